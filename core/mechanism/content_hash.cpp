#include "core/mechanism/content_hash.h"

#include "core/mechanism/mechanism.h"

namespace rigstep {

namespace {

void add_structure(ContentHash& hash, const Mechanism& m) {
  hash.add(m.name());
  hash.add(m.gravity_0());
  for (const Body& b : m.bodies()) {
    hash.add(b.name);
    hash.add(b.mass);
    hash.add(b.inertia_b);
    hash.add(b.position_0);
    hash.add(b.orientation);
    hash.add(b.velocity_0);
    hash.add(b.angular_velocity_0);
  }
  for (const Joint& j : m.joints()) {
    hash.add(j.name);
    hash.add(j.type);
    hash.add(static_cast<std::int64_t>(j.first));
    hash.add(static_cast<std::int64_t>(j.second));
    for (const JointFrame* side : {&j.in_first, &j.in_second}) {
      hash.add(side->point_b);
      hash.add(side->axes_b);
    }
    if (j.type == JointType::screw) hash.add(j.lead);
    if (j.type == JointType::distance) hash.add(j.length);
  }
  for (const JointCoordinate& c : m.coordinates()) {
    hash.add(static_cast<std::int64_t>(c.joint));
    hash.add(c.freedom);
    hash.add(c.offset);
  }
}

// A number for each way of moving: 0 to 2 the kind of a single term, 3 and 4 an input alone, 5 to 7 sums.
void add_motion(ContentHash& hash, const Driver& d) {
  const bool from_time = d.from_input == Driver::FromInput::nothing;
  const bool is_sum = from_time ? d.function.terms.size() > 1 : !d.function.terms.empty();
  if (is_sum) {
    hash.add(static_cast<std::int64_t>(5 + static_cast<int>(d.from_input)));
    hash.add(d.time_constant);
    add_function(hash, d.function);
    return;
  }
  const TimeFunction::Term term = from_time ? d.function.terms.front() : TimeFunction::Term();
  hash.add(static_cast<std::int64_t>(from_time ? static_cast<int>(term.kind) : 2 + static_cast<int>(d.from_input)));
  add_term(hash, term, d.time_constant);
}

void add_couplings_and_drivers(ContentHash& hash, const Mechanism& m) {
  for (const Coupling& c : m.couplings()) {
    hash.add(c.name);
    for (const int i : {c.first, c.second}) hash.add(static_cast<std::int64_t>(i));
    hash.add(c.ratio);
  }
  for (const Driver& d : m.drivers()) {
    hash.add(d.name);
    hash.add(static_cast<std::int64_t>(d.coordinate));
    add_motion(hash, d);
  }
}

// Place of the element's kind among those that a force_element output can show; 0 for other outputs.
int number_of_scalar(const Output& output) {
  int number = 0;
  if (output.kind != Output::Kind::force_element) return number;
  for_each_kind([&]<class Kind>() {
    if (Kind::kIsScalar && kind_of<Kind> < output.element_kind) ++number;
  });
  return number;
}

void add_loads_and_channels(ContentHash& hash, const Mechanism& m) {
  for (const AppliedLoad& l : m.loads()) {
    hash.add(l.name);
    hash.add(static_cast<std::int64_t>(l.body));
    hash.add(l.frame);
    for (const Vec3* v : {&l.force, &l.torque, &l.point_b}) hash.add(*v);
    for (const double x : {l.constant, l.amplitude, l.angular_frequency, l.phase}) hash.add(x);
  }
  // before the inputs, the other kinds after the outputs: identities of before this was a list remain
  for (const Spring& spring : m.springs()) add(hash, spring);
  for (const Input& i : m.inputs()) {
    hash.add(i.name);
    hash.add(i.kind);
    hash.add(i.frame);
    hash.add(i.freedom);
    hash.add(i.unit);
    for (const int k : {i.body, i.joint}) hash.add(static_cast<std::int64_t>(k));
    for (const Vec3* v : {&i.direction, &i.point_b}) hash.add(*v);
  }
  for (const Output& o : m.outputs()) {
    hash.add(o.name);
    hash.add(o.kind);
    hash.add(static_cast<std::int64_t>(number_of_scalar(o)));
    for (const int k : {o.body, o.joint, o.coordinate, o.element}) hash.add(static_cast<std::int64_t>(k));
    hash.add(o.point_b);
    if (o.driver >= 0) hash.add(static_cast<std::int64_t>(o.driver));
  }
}

// their values are numbers of the description already
void add_parameters(ContentHash& hash, const Mechanism& m) {
  for (const Parameter& p : m.parameters()) {
    hash.add(p.name);
    hash.numbers({p.minimum, p.maximum});
    for (const Target& target : p.targets) {
      hash.add(target.of);
      hash.add(target.factor);
    }
  }
}

}  // namespace

std::uint64_t content_hash(const Mechanism& m) {
  ContentHash hash;
  add_structure(hash, m);
  add_couplings_and_drivers(hash, m);
  add_loads_and_channels(hash, m);
  for_each_kind([&]<class Element>() {
    if constexpr (!std::is_same_v<Element, Spring>)
      for (const Element& element : m.all<Element>()) add(hash, element);
  });
  add_parameters(hash, m);
  return hash.value();
}

}  // namespace rigstep
