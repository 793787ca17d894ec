// Writes or checks the hashes of states and outputs that many mechanisms reach: a change that is meant to change no
// result must leave them as they are.
//
//   state_hashes --write FILE    runs every mechanism and writes FILE
//   state_hashes --check FILE    runs every mechanism and compares with FILE
//   state_hashes --quick FILE    compares, but runs the slower instruction sets over the first 20 steps only
//
// Every mechanism runs with one and two threads, with every instruction set of this processor, and through a restore
// in the middle of the run. All of these must agree before anything is written or compared.
// Exit status: 0 the same bits, 1 other bits, 2 wrong usage.
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/force_cases.h"
#include "tests/support/primal_body_cases.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace rigstep::test {
namespace {

constexpr std::uint64_t kEarlySteps = 20;

struct Case {
  std::string name;
  Mechanism mechanism;
  std::uint64_t steps;
};

// What a run leaves: equal runs have equal lines.
struct Fingerprint {
  std::uint64_t early = 0;                    // hash of the state after kEarlySteps
  std::uint64_t state = 0;                    // hash of the last state
  std::uint64_t outputs = 0;                  // hash of the output channels at every 250th step
  int ok = 0, not_converged = 0, failed = 0;  // steps

  std::string line() const {
    char text[96];
    std::snprintf(text, sizeof text, "%016llx %016llx %016llx %d %d %d", static_cast<unsigned long long>(early),
                  static_cast<unsigned long long>(state), static_cast<unsigned long long>(outputs), ok, not_converged,
                  failed);
    return text;
  }
};

// Inputs of a step: between the values of a fixed table, each reached after 50 steps. Signals and what drivers
// follow may be lengths or angles, so they stay small.
Inputs table_inputs(const Mechanism& m, std::uint64_t step) {
  static const std::vector<double> kTable = [] {
    Random random(1);
    std::vector<double> values(97);
    for (double& value : values) value = random.uniform(-2.0, 2.0);
    return values;
  }();
  const std::uint64_t row = step / 50;
  const double part = static_cast<double>(step % 50) / 50.0;
  const int loads = static_cast<int>(m.inputs().size());  // the channels of drivers come after them
  Inputs u;
  u.count = static_cast<int>(m.input_channels().size());
  for (int k = 0; k < u.count; ++k) {
    const double from = kTable[(row + 31U * k) % kTable.size()], to = kTable[(row + 1 + 31U * k) % kTable.size()];
    u.value[k] = from + part * (to - from);
    const bool is_load = k < loads && m.inputs()[k].kind != Input::Kind::signal;
    if (!is_load) u.value[k] *= 0.02;
  }
  return u;
}

std::unique_ptr<index3::Stepper> restored(const Mechanism& m, const index3::Settings& settings,
                                          const index3::State& from) {
  auto stepper = std::make_unique<index3::Stepper>(m, settings);
  std::vector<double> flat(from.flat_size());
  from.flatten(flat);
  stepper->restore(flat, from.step);
  return stepper;
}

Fingerprint run(const Case& each, const index3::Settings& settings, std::uint64_t steps, bool restore_in_the_middle) {
  auto stepper = std::make_unique<index3::Stepper>(each.mechanism, settings);
  Fingerprint print;
  Outputs outputs;
  for (std::uint64_t k = 0; k < steps; ++k) {
    if (k == kEarlySteps) print.early = stepper->state().hash();
    if (restore_in_the_middle && k == steps / 2) stepper = restored(each.mechanism, settings, stepper->state());
    const Inputs inputs = table_inputs(each.mechanism, k);
    const bool reads_outputs = k % 250 == 249;
    const StepStatus status = (reads_outputs ? stepper->step(inputs, outputs) : stepper->step(inputs)).status;
    ++(status == StepStatus::ok ? print.ok : failed(status) ? print.failed : print.not_converged);
    if (reads_outputs)
      print.outputs = XXH3_64bits_withSeed(outputs.value.data(), outputs.count * sizeof(double), print.outputs);
  }
  print.state = stepper->state().hash();
  return print;
}

// The line of a mechanism; on disagreement it says which variant differs, so no file has it.
std::string fingerprint(const Case& each, bool is_quick) {
  const Fingerprint expected = run(each, {}, each.steps, false);  // one thread, the fastest instruction set
  const bool is_divided = index3::Stepper(each.mechanism, {.threads = 2}).threads() > 1;
  for (const int threads : {1, 2}) {
    if (threads > 1 && !is_divided) continue;  // the same program
    if (run(each, {.threads = threads}, each.steps, true).line() != expected.line()) return "a restored run differs";
    for (const std::string set : instruction_sets()) {
      if (set == instruction_sets().back()) continue;  // what ran above
      const index3::Settings settings{.threads = threads, .instruction_set = set.c_str()};
      const bool agrees = is_quick ? run(each, settings, kEarlySteps, false).state == expected.early
                                   : run(each, settings, each.steps, false).line() == expected.line();
      if (!agrees) return set + " with " + std::to_string(threads) + " threads differs from the default";
    }
  }
  return expected.line();
}

std::vector<Case> cases() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("config/mechanisms")))
    files.push_back(entry.path().stem());
  std::sort(files.begin(), files.end());
  std::vector<Case> all;
  for (const std::string& file : files) all.push_back({file, mechanism(file), 2000});
  const auto add = [&](const std::string& name, unsigned seed, const Description& d) {
    all.push_back({name + " " + std::to_string(seed), build(d), 500});
  };
  for (unsigned seed = 1; seed <= 80; ++seed)
    add("random_tree", seed, random_tree(seed, 4 + static_cast<int>(seed % 14)));
  for (unsigned seed = 1; seed <= 80; ++seed)
    add("random_loops", seed, random_loops(seed, 3 + static_cast<int>(seed % 6)));
  for (int seed = 1; seed <= 30; ++seed)
    add("random_chain", static_cast<unsigned>(seed), random_chain(seed, 8 + 3 * seed));
  for (int legs = 2; legs <= 9; ++legs) add("star", static_cast<unsigned>(legs), star(legs, 3));
  for (unsigned windows = 1; windows <= 4; ++windows) {
    const Description planar = ladder(static_cast<int>(windows));
    add("planar_ladder", windows, planar);
    add("ladder", windows, in_space(planar));
  }
  for (unsigned side = 2; side <= 4; ++side) add("net", side, net(static_cast<int>(side), JointType::spherical));
  all.push_back({"every_force_element", every_force_element(), 2000});
  return all;
}

// lines of a file by the names of their mechanisms
std::map<std::string, std::string> read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(path + ": cannot be read: write it with state_hashes --write " + path);
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) throw Error(path + ": \"" + line + "\" is not NAME: HASHES");
    lines[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return lines;
}

// The lines of all mechanisms; each core makes one after the other. Throws what the first of them threw.
std::vector<std::string> fingerprints(const std::vector<Case>& all, bool is_quick) {
  std::vector<std::string> lines(all.size());
  std::vector<std::exception_ptr> errors(all.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> cores;
  for (unsigned k = 0; k < std::max(1U, std::thread::hardware_concurrency()); ++k)
    cores.emplace_back([&] {
      for (std::size_t i = next++; i < all.size(); i = next++) try {
          lines[i] = fingerprint(all[i], is_quick);
        } catch (const std::exception&) {
          errors[i] = std::current_exception();
        }
    });
  cores.clear();  // joins them
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return lines;
}

// number of mechanisms that differ
int compare(const std::string& path, const std::vector<Case>& all, bool is_quick) {
  std::map<std::string, std::string> expected = read(path);
  const std::vector<std::string> lines = fingerprints(all, is_quick);
  int differing = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Case& each = all[i];
    const auto line = expected.find(each.name);
    const std::string& reached = lines[i];
    const std::string known = line == expected.end() ? "nothing: add the line below" : line->second;
    if (line != expected.end()) expected.erase(line);
    if (known == reached) continue;
    ++differing;
    std::printf("%s\n  expected %s\n  reached  %s\n", each.name.c_str(), known.c_str(), reached.c_str());
  }
  for (const auto& [name, line] : expected)
    std::printf("%s\n  is in the file, but no mechanism any more\n", name.c_str());
  differing += static_cast<int>(expected.size());
  std::printf("%d of %zu mechanisms differ\n", differing, all.size());
  return differing;
}

// How many steps are ok, not converged and failed: what follows the hashes.
std::string counts_in(const std::string& line) {
  std::size_t at = 0;
  for (int hash = 0; hash < 3 && at != std::string::npos; ++hash) at = line.find(' ', at + 1);
  return at == std::string::npos ? "" : line.substr(at + 1);
}

// Tells where steps end otherwise than by the file so far: that may be a change for the worse.
void write(const std::string& path, const std::vector<Case>& all) {
  const std::vector<std::string> lines = fingerprints(all, false);
  const std::map<std::string, std::string> so_far =
      std::filesystem::exists(path) ? read(path) : std::map<std::string, std::string>();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const auto line = so_far.find(all[i].name);
        line != so_far.end() && counts_in(line->second) != counts_in(lines[i]))
      std::printf("%s: steps ok, not converged, failed: %s, so far %s\n", all[i].name.c_str(),
                  counts_in(lines[i]).c_str(), counts_in(line->second).c_str());
  std::ofstream file(path);
  for (std::size_t i = 0; i < all.size(); ++i) file << all[i].name << ": " << lines[i] << '\n';
  if (!file.flush()) throw Error(path + ": cannot be written");
  std::printf("%zu mechanisms written to %s\n", all.size(), path.c_str());
}

}  // namespace
}  // namespace rigstep::test

int main(int argc, char** argv) try {
  const std::string what = argc == 3 ? argv[1] : "";
  if (what != "--write" && what != "--check" && what != "--quick") {
    std::fputs("usage: state_hashes --write FILE | --check FILE | --quick FILE\n", stderr);
    return 2;
  }
  const std::vector<rigstep::test::Case> all = rigstep::test::cases();
  if (what != "--write") return rigstep::test::compare(argv[2], all, what == "--quick") == 0 ? 0 : 1;
  rigstep::test::write(argv[2], all);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "state_hashes: %s\n", error.what());
  return 1;
}
