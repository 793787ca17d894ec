// The elimination as flat tables: what the kernels walk over, in lanes of equal work. Plain data, made at load time
// from the model.
//
// Parts of a mechanism with equal structure (segments of a chain, legs of a platform, corners of a car) lie side by
// side in the lanes of a batch; what has no likeness is a batch of its own, one lane wide, but its constraint may be
// evaluated beside others. How wide the batches are is the only thing that the processor decides: each lane computes
// the same in whatever batch it is. Element k of an array with F numbers per body stands at F position + k width +
// lane.
//
// A compound is a set of bodies of which the step knows only the constraints that lead out of it, its pending ones: a
// packed symmetric matrix, the compliance between their rows, and a vector, the right-hand side, later the solution. A
// front joins two compounds, its children, by the constraint p that closes between them: it adds the blocks of p,
// factorises their sum with the compliance of p (the pivots), and what remains is a compound again.
//
//     child[0]            child[1]           the front: rows of its pending constraints, a then b
//     body o--p           p--o body
//     a [ aa     ]        p [ pp     ]       a [ aa     ]   pending[0]: row 0, in_child {row of a in child[0], -1}
//     p [ pa  pp ]        b [ bp  bb ]       b [ ba  bb ]   pending[1]: row of b, in_child {-1, row of b in child[1]}
//         pivot: row of p in the child           factor: the triangle L of p, the rows pa and bp solved with it, and
//                                                the solution of p
//
// A leaf is the compound of one body, whose rows are those of its handles: the constraints that act on it.
//
// Equal compounds lie side by side, here in a batch of width 4. Number k of the packed lower half (by rows: aa, pa, pp)
// stands in all lanes one behind the other, so that lane l finds it at matrix + k width + l:
//
//     matrix:  | aa aa aa aa | pa pa pa pa | pp pp pp pp |     Place of lane 2: base = matrix + 2, stride = width
//       lane      0  1  2  3    0  1  2  3    0  1  2  3
//
// A parent's lanes 0 1 2 3 find the children's numbers (Operands)
//
//     in_order    in one batch of the same width, in lanes 0 1 2 3
//     beside      in one wider batch, in neighbouring lanes, say 4 5 6 7 of eight; constraints also at one body for all
//     chosen      in two batches of the same width, each in a lane of its own (bodies of constraints only)
//     scattered   each at a Place of its own
#pragma once

#include <bit>
#include <cstdint>

#include "core/index3/physics/laws.h"

namespace rigstep::index3 {

inline constexpr int kMostLanes = 8;  // of a batch: 1, 2, 4 or, where the processor has registers for them, 8

inline constexpr int kMaxRows = 6;   // of one constraint
inline constexpr int kMaxSides = 4;  // bodies of one constraint

// Where one lane of something lies: element k at base + k stride.
struct Place {
  int base = 0;
  int stride = 1;
};

// Where each lane of an operation finds something, and the pattern of these places, so that it need not look at each:
// lane after lane, as in one batch; all at one place; or each at its own.
struct LanePlaces {
  Place of_lane[kMostLanes];
  enum class Pattern : unsigned char { scattered, contiguous, uniform } pattern = Pattern::scattered;
};

struct BodyPlace {
  int position = 0;
  int width = 1;
  int lane = 0;
  Place of(int field) const;  // in the records of the bodies
};

// The record of a body: its state at two instants, which change places, then what the phases of a step write.
inline constexpr int kStateFields = 22;                                                     // r p v w_b a alpha_b r_low
inline constexpr int kR = 0, kP = 3, kV = 7, kOmega = 10, kA = 13, kAlpha = 16, kLow = 19;  // in a state
inline constexpr int kStatesField = 0;
inline constexpr int kHistoryField = kStatesField + 2 * kStateFields;
// In the history: of the last instant the hatted terms of (15) (16) for p, times -2; of the iterate the displacement
// beyond that of uniform motion.
inline constexpr int kMinus2PdHat = 0, kMinus2PddHat = 4, kBeyond = 8;
inline constexpr int kRotationField = kHistoryField + 11;  // A, row by row
inline constexpr int kTwistField = kRotationField + 9;     // v, w: world frame
inline constexpr int kLoadField = kTwistField + 6;         // Q: force, torque: world frame
inline constexpr int kMotionField = kLoadField + 6;        // displacement | velocity | acceleration, world frame
inline constexpr int kInertiaInverseField = kMotionField + 6;
inline constexpr int kConstantsField = kInertiaInverseField + 6;      // 1/m, m, inertia xx yy zz yx zx zy
inline constexpr int kTorqueTangentField = kConstantsField + 8;       // of a torque about x, y, z, symmetric each
inline constexpr int kTangentScalesField = kTorqueTangentField + 18;  // Workspace::inverse_root squared: see there
inline constexpr int kBodyFields = kTangentScalesField + 2;
static_assert(kBodyFields * 4 * sizeof(double) % 64 == 0, "records in lanes share no cache line");

inline Place BodyPlace::of(int field) const { return {kBodyFields * position + field * width + lane, width}; }

// Numbers per lane of a handle: what one constraint does to one body. Of general rows: load (6), twice the geometric
// stiffness (6), rows (6 each). Of a point constraint: force on the point (3), with cosines their moment (3) and
// stiffness as above, arm (3), normals (3 each), all but the arm as for the first body; what the force adds to load and
// stiffness follows from the arm.
inline constexpr int kMomentOfHandle = 3, kStiffnessOfHandle = 6, kRowsOfHandle = 12;
constexpr int arm_of_handle(int cosines) { return cosines == 0 ? 3 : 12; }
constexpr int normals_of_handle(int cosines) { return arm_of_handle(cosines) + 3; }

// What a constraint looks like to the bodies that it acts on.
struct RowFormat {
  int rows = 0;
  int cosines = 0;  // after the three rows of a common point: rows of moments alone; kAnyRows: rows of any kind
  // Of any kind: rows along axes of the first body, before cosines; or a distance of two points; or a driven angle, by
  // its form (AngleForm in physics/constraints.h); else kOneByOne, of couplings and force elements.
  int lines = kOneByOne;
  // Whether the last row is that of the joint's own coordinate, the angle of a revolute joint (counted as a cosine) or
  // the displacement of a prismatic one. Driven: it is where a driver holds it. Elastic: what force elements along it
  // add to the tangent, a row without multiplier as in physics/elements/bushing.h. Threaded: the displacement of a
  // screw, less what its angle makes of it.
  enum class Coordinate : unsigned char { none, driven, elastic, threaded } coordinate = Coordinate::none;
  static constexpr int kAnyRows = -1, kOneByOne = -1, kDistance = 3;
  static constexpr int kAngleInFirst = 4, kAngleInSecond = 5, kMiddleAngle = 6;
  constexpr bool general() const { return cosines == kAnyRows; }
  constexpr bool in_lanes() const { return !general() || lines != kOneByOne; }  // evaluated there
  constexpr bool is_angle() const { return general() && lines >= kAngleInFirst; }
  constexpr bool ends_with_coordinate() const { return coordinate != Coordinate::none; }
  constexpr bool is_threaded(int row) const { return coordinate == Coordinate::threaded && row == rows - 1; }
  constexpr bool is_elastic(int row) const { return coordinate == Coordinate::elastic && row == rows - 1; }
  // numbers of a handle that load and geometric stiffness need, and all
  int load_size() const { return general() ? kRowsOfHandle : normals_of_handle(cosines); }
  int handle_size() const { return load_size() + (general() ? 6 * rows : 3 * cosines); }
};

// What the leaf of a body stores of one constraint on it, in the body's lanes: load, stiffness, Jacobian.
struct Handle {
  RowFormat format;
  int signs = 0;   // of its Jacobian
  int at = 0;      // into the handles
  int shared = 0;  // where all but the arm lies: there too, or where the constraint's other side has it
  int stride = 1;  // of both
  int row = 0;     // first of its rows in the leaf
};

// By lane, as the sign of a zero: + first body, - second; general rows carry their own. Handles share them, as there
// are few.
struct Signs {
  alignas(kMostLanes * sizeof(double)) double of_lane[kMostLanes] = {};
};

// Where the lanes of an operation find its operands: in a batch as wide as their own and in the same lanes; in
// neighbouring lanes of a batch; in any lanes of two batches as wide as their own; or anywhere, perhaps with copies for
// unused lanes. A batch has unused lanes where it holds fewer operations than its width: they repeat lane 0.
enum class Operands : unsigned char { in_order, beside, chosen, scattered };

// Numbers that an unused lane takes over from another place.
struct Copy {
  Place from, to;
};

struct Child {
  bool present = false;
  int rows = 0;                       // pending
  int pivot = 0;                      // its first row of the constraint that the parent eliminates
  int padding = 0, padding_rows = 0;  // first row and number of rows of padding that the parent drops
  int matrix = 0;                     // packed compliance
  int vector = 0;                     // right-hand side, later the solution
  int stride = 1;
  int scattered = -1;              // into the tables of places
  int first_copy = 0, copies = 0;  // of the solution
};

// Where the parent's lanes find a child, or a constraint its bodies, that lie scattered.
struct ScatteredChild {
  Place matrix[kMostLanes], vector[kMostLanes];
};
struct ScatteredSide {
  Place record[kMostLanes];
  Place handle[kMostLanes];
};

// For each lane, which lane of two batches in a row it takes.
struct LaneChoice {
  alignas(kMostLanes * sizeof(double)) std::int64_t of_lane[kMostLanes] = {};
};

// Where a constraint's lanes choose their bodies from, and where their handles go: each handle's own lanes choose from
// what they held before and the constraint's lanes.
struct ChosenSide {
  int record[2] = {};
  LaneChoice body;
  int handles = 0;
  int handle[2] = {};
  LaneChoice kept[2];
};

// Constraints that stay open after a front and follow each other in it and in its children, as a block of their rows.
struct Pending {
  int row = 0;  // first row in the front
  int rows = 0;
  int in_child[2] = {-1, -1};  // first row there, -1: not pending there
};

struct Leaf {
  int width = 1;
  int record = 0;  // of the body
  int rows = 0;
  int first_handle = 0, handles = 0;
  int matrix = 0, vector = 0;         // as in Child
  bool has_two_equal_points = false;  // two point constraints of one format, and no others
  bool is_isotropic = false;          // all principal moments of inertia are equal, in all lanes
  bool is_primal = false;  // rows: its displacement; handles: of all its constraints, which lie with their attachments
  int dense = -1;          // into the full tangent mass matrices, -1: mass and inertia only
};

// Stands for a primal body at one of its constraints: it couples the rows of the constraint with the body's
// displacement, which come behind.
struct Attachment {
  int width = 1;
  int handle = 0;
  int matrix = 0, vector = 0;  // as in Child
};

// Which of four blocks a front has where all blocks have as many rows: a and p of the left child, p and b of the right
// one. kLeft, kRight: the child exists; kLeftOpen, kRightOpen: its a or b remains pending; kChainLink: all four, as
// between the bodies of a chain; kAnyFront: no such front.
enum TwoSided : unsigned char { kLeft = 1, kRight = 2, kLeftOpen = 4, kRightOpen = 8, kChainLink = 15, kAnyFront = 16 };

// What of that the kernels know while they are compiled.
enum class Form { general, two_sided, chain_link };
inline constexpr int kForms = 3;
constexpr Form known_form(unsigned char form) {
  return form == kAnyFront ? Form::general : form == kChainLink ? Form::chain_link : Form::two_sided;
}

struct Front {
  Operands children = Operands::in_order;
  int width = 1;
  int rows = 0;    // pending
  int pivots = 0;  // rows eliminated: one constraint, or none
  unsigned char form = kAnyFront;
  bool is_primal = false;  // it eliminates the displacement of a primal body, whose pivots are negative
  int constraint = -1;     // batch of the eliminated constraint, which may be wider
  int row_position = 0;    // its rows: element k at row_position + k row_stride + lane
  int row_stride = 1;
  Child child[2];
  int first_pending = 0, pendings = 0;
  int matrix = 0, vector = 0;  // as in Child; of a chain link whose children lie in order, those of its left one
  int factor = 0;  // L with 1/d on its diagonal, packed; the rows P; the solution D^-1 b_p (front_elimination.cpp)
};

// One side of a constraint in lanes.
struct Side {
  Place record;             // of the body
  bool is_uniform = false;  // it is the same for all lanes; else neighbours have their own
  Place handle;
  int scattered = -1;              // into the tables of places
  int chosen = -1;                 // into those of choices
  int first_copy = 0, copies = 0;  // of the handle
};

// Constraints of equal format, side by side; those that are not for lanes are evaluated one by one. Fronts of several
// shapes may eliminate them.
struct ConstraintBatch {
  RowFormat format;
  Operands sides = Operands::in_order;
  int width = 1;
  int row_position = 0;
  int position = 0;  // of arrays per constraint
  Side side[2];
};

// Scalars that force elements act along, as many as lanes hold, wherever their bodies' records lie: the own coordinates
// of revolute or prismatic joints, the distances of two points of springs or stops, or these along a fixed direction. A
// scalar too few: the first one again, with nothing along it.
struct ScalarBatch {
  enum class Of : unsigned char { angle, displacement, distance, projection } of = Of::angle;
  LanePlaces first, second;  // bodies
  int first_law = 0, laws = 0;
};
// Force elements of one law along the scalars of a batch, one in each lane. A lane without one: numbers without effect.
struct LawBatch {
  Law law = Law::spring;
  // Of springs, over the deflection and over the rate: into the tables; -1: none of them has one. A table: how near
  // its points are near, then its pieces: where each begins, its value there and its slope. A table with fewer pieces
  // than its neighbours: further ones that begin nowhere.
  int table[2] = {-1, -1};
  int pieces[2] = {0, 0};
};
inline constexpr int kTablePiece = 3;

// Of each scalar: what never changes, of a joint as of a constraint, else both points, the direction, and at
// kIsOnGround 1 where one of the bodies is the ground, else 0; what a step holds, an offset, where angles are unwrapped
// from, and the effort along it of inputs and of what is given over time; and what is found: value, rate, the force on
// the second body of a unit effort, its torque on the first body with the opposite sign and on the second one, effort,
// stiffness and damping of all that acts along it, of distances the arms of both points, and the actions on both
// bodies, of joints without their part of the tangent.
inline constexpr int kScalarConstants = 18, kHeldNumbers = 3, kScalarNumbers = 20 + 2 * kActionNumbers;
inline constexpr int kIsOnGround = 9;
inline constexpr int kEffortAlong = 11, kArmsOfPoints = 14, kActionsOfScalar = 20;  // where these begin

// All of them, one behind the other.
struct ScalarTables {
  int lanes;  // of each batch
  const ScalarBatch* batch;
  int batches;
  const LawBatch* law;
  const double* constants;        // kScalarConstants of each
  const double* tables;           // of springs
  const double* held;             // kHeldNumbers of each
  const double* law_numbers;      // kLawNumbers of each lane of each law
  double* found;                  // kScalarNumbers of each
  const TangentFactors* factors;  // of own-body blocks; null: nobody asks for these
  // Which of them: all at the iterate, with its velocities; or at the instant that a step has reached, its begin and
  // end already exchanged, the own coordinates of joints alone, or all others.
  enum class Of { iterate, joints_at_end, points_at_end } of;
};

// Joint coordinates of one format that couplings hold, one in each lane; one too few: the first one again. Of
// each: what never changes, as of the constraint of a driver; and what is found: value, rate, what the velocities of
// its bodies add to its acceleration, its acceleration, its gradient (force and torque of the first body, torque of the
// second with the opposite sign), and twice the geometric stiffness of a unit load on the first and on the second body.
struct CoordinateBatch {
  RowFormat format;
  int width = 1;
  int position = 0;                             // lanes before it
  Place first[kMostLanes], second[kMostLanes];  // bodies
};
inline constexpr int kCoordinateNumbers = 25;
inline constexpr int kGradientOfCoordinate = 4, kStiffnessOfCoordinate = 13;  // where these begin
struct CoordinateTables {
  const CoordinateBatch* batch;
  int batches;
  const double* constants;             // kConstraintConstants of each
  double* found;                       // kCoordinateNumbers of each
  bool with_stiffness, with_velocity;  // with all that follows from velocities and accelerations
};

// Force elements of a kind that acts along more than a scalar, as many as lanes hold; one too few: the first of all
// again. What they are made of and what is found of each: physics/laws.h.
struct ElementBatch {
  LanePlaces first, second;  // bodies, the same where there is one
};
struct ElementTables {
  int lanes;  // of each batch
  const ElementBatch* batch;
  int batches;
  const double* numbers;
  double* found;
  bool at_end;                    // at the instant that a step has reached, as of scalars, not at the iterate
  const TangentFactors* factors;  // as of scalars
};

// Where each lane of a leaf finds an action on its body; a lane without one: numbers that add nothing.
struct Action {
  LanePlaces from;
  bool has_tangent = false;
};
// A leaf of bodies that more than their weight acts on.
struct LoadedLeaf {
  int leaf = 0;
  int first_action = 0, actions = 0;
};
struct ActionTables {
  const LoadedLeaf* leaf;
  int leaves;
  const Action* action;
  double* numbers;    // Workspace::found, into which the places of actions point; it is only read
  double gravity[3];  // world frame [m/s^2]
  // Own-body blocks of the tangent: left as they are; summed; or summed and compared with those before.
  enum class OwnBlocks { kept, replaced, compared } blocks;
};

// A change of the tangent of force elements below this part of its body's inertia, or of the tangent where that is
// more, needs no new factor. Chosen: an iteration with such a tangent comes nearer by so much.
inline constexpr double kSteady = 1e-4;

// Constraints, leaves, attachments or fronts of one shape, one behind the other: the order of a way from the leaves to
// the root. Constraints stand before the leaves and attachments of their bodies, children before parents.
struct Run {
  enum class Of { constraints, leaves, attachments, fronts };
  Of of = Of::leaves;
  int first = 0, count = 0;
  int shape = 0;
};

// What operations have in common, as a number: their lanes, and what decides how they compute. The kernels have a loop
// for each shape of constraints, leaves and fronts.
inline constexpr int kWidths = std::bit_width(static_cast<unsigned>(kMostLanes));  // 1, 2, 4, 8
constexpr int shape(int width, int kind) { return kind * kWidths + std::countr_zero(static_cast<unsigned>(width)); }
// Kinds of a constraint's shape, beside 0 ... 3 cosines; kAngleRow: a revolute joint with the row of its angle.
inline constexpr int kGeneralRows = 4, kAngleRow = 5;
constexpr int shape_of(const ConstraintBatch& c) {
  if (c.format.general()) return shape(c.width, kGeneralRows);
  return shape(c.width, c.format.ends_with_coordinate() ? kAngleRow : c.format.cosines);
}
// handles: all
constexpr int shape_of(const Leaf& l, const Handle* handles) {
  return shape(l.width, l.has_two_equal_points ? 1 + handles[l.first_handle].format.cosines : 0);
}
constexpr int shape_of(const Attachment& g) { return shape(g.width, 0); }
constexpr int shape_of(const Front& f) {
  return shape(f.width, kForms * f.pivots + static_cast<int>(known_form(f.form)));
}
inline constexpr int kConstraintShapes = (kAngleRow + 1) * kWidths;
inline constexpr int kLeafShapes = 5 * kWidths;  // any handles; two equal points with 0 ... 3 cosines
inline constexpr int kFrontShapes = kForms * (kMaxRows + 1) * kWidths;

// The step size, and what the formulas make of it, so that no division stands in the loop.
struct StepSize {
  double dt;                             // [s]
  double two_over_dt, four_over_dt;      // [1/s]
  double four_over_dt2, eight_over_dt2;  // [1/s^2]
  double quarter_dt2;                    // [s^2]
  bool to_middle;                        // the iterate is the middle of the step, not its end (kernels/midpoint.h)
};
constexpr StepSize step_size(double dt) {
  return {dt, 2.0 / dt, 4.0 / dt, 4.0 / (dt * dt), 8.0 / (dt * dt), 0.25 * dt * dt, false};
}
// Of the midpoint rule, whose iterate is half a step away.
constexpr StepSize midpoint_step_size(double dt) {
  StepSize size = step_size(dt);
  size.dt = 0.5 * dt;
  size.to_middle = true;
  return size;
}

// Sizes of the arrays per constraint.
inline constexpr int kConstraintConstants = 19;  // points in both bodies, u0 u1 in the first, h0 h1 in the second;
                                                 // of a distance [m], which has no axes, that in the place of u0; of
                                                 // a screw its pitch [m/rad] behind
inline constexpr int kConstraintFields = 18;     // the same but the last, world frame

// Everything the kernels read and write.
struct alignas(64) StepArrays {
  // what changes places when a step is made: on one cache line
  int last;  // field of the state at the last instant, in the body's record
  int next;  // ... of the iterate
  double* last_lambda;
  double* last_kappa;
  double* lambda;
  double* kappa;

  // tables
  const Leaf* leaf;
  const Attachment* attachment;
  const Handle* handle;
  const Signs* signs;
  const Front* front;
  const Run* run;
  int runs;
  const Pending* pending;
  const Copy* copy;
  const ScatteredChild* scattered_child;
  const ScatteredSide* scattered_side;
  const ChosenSide* chosen_side;
  const ConstraintBatch* constraint;
  int constraints;
  const double* constraint_constants;
  const double* compliance[3];     // of every row, by ComplianceOf
  const double* multiplier_scale;  // of every row: from Lambda to lambda, 4/dt^2, or 0 for what has no multiplier
  const double* carried;           // of every row: what a unit of its multiplier opens it by, compliance dt^2/4 or 0
  StepSize step;
  int rows;  // of all constraints, lanes included

  // written by the step, by phase
  double* body;     // records
  double* tangent;  // of bodies with force elements, 6 x 6 lower half, and their inverse tangent mass matrix
  double* mass_inverse;
  double* has_forces;  // of each part: not 0 where its last factor has derivatives of forces (Tangent)
  double* constraint_fields;
  double* handles;
  double* Phi;
  double* closed_at;  // of a row along an axis or of an angle: where it is closed [m] or [rad], zero but for drivers;
  double* closed_acceleration;  // and its second derivative
  double* elasticity;           // of an elastic row: the root of what the force elements along it add to the tangent
  double* rate;                 // Phi_t: the velocity constraints are J v + rate = 0
  double* quadratic;            // J-dot v + Phi_tt: the acceleration constraints are J a + quadratic = 0
  double* sigma;  // impulses [N s] of the last velocity pass; the step does not read them, linear_solve_test does
  double* arena;  // of leaves and fronts
  double* scratch;
};

}  // namespace rigstep::index3
