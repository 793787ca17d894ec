#include "server/studies/index3.h"

#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

constexpr const char* kIndex3Introduction =
    "# The index-3 divide-and-conquer paper, sections 4 and 5, done again\n\n"
    "Malczyk, Fraczek, Gonzalez, Cuadrado: Index-3 divide-and-conquer algorithm for efficient multibody system "
    "dynamics\n"
    "simulations: theory and parallel implementation (2019). The printed form is the paper's algorithm in its own\n"
    "coordinates, blocks of 7 x 7 in matrices of Eigen; what had to be corrected to make it run at all stands in\n"
    "`core/offline/index3_literal.h`. Unless another choice is named, it has the tangent of every iteration and a new\n"
    "one for the projections, at the converged pose. The stepper is the dual form that runs in real time, with the\n"
    "geometric stiffness that the end of section 4.4 proposes.\n\n"
    "Not the paper's: figures 3 and 8, drawings, are missing in its text, so the poses are those that the text gives;\n"
    "circles come from `featherstone_dca`, which shares no code with the form, and for the four-bar from the equation "
    "of\n"
    "its one freedom, in place of MSC.ADAMS. The curves of\n"
    "figures 4 to 7 and 9 to 14 are known from the text's statements only, which are what is compared.\n\n";

}  // namespace

StudyPart study_index3(const StudyRequest& study) {
  struct Part {
    StudyPart (*perform)(const StudyRequest&);
    double share;  // of the time
  };
  constexpr Part kParts[] = {{index3_cases, 0.15}, {index3_penalties, 0.25}, {index3_speed, 0.6}};
  StudyPart all;
  double before = 0.0;
  for (const Part& part : kParts) {
    StudyRequest own = study;
    own.progress = [&](double done) {
      if (study.progress) study.progress(before + part.share * done);
    };
    all.add(part.perform(own));
    before += part.share;
  }
  const char* quick = "**A quick run: short simulations, few sizes; it only shows that it works.**";
  write_text(study.folder / "index3.md", page_of(study, kIndex3Introduction, quick, all));
  return all;
}

}  // namespace rigstep::server
