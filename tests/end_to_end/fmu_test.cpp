// Functional mock-up units: the state machines of both standards, states, and damaged units that end in an error.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <thread>

#include "server/fmu/archive.h"
#include "server/fmu/simulate_fmu.h"
#include "server/plugin/fmi2.h"
#include "server/plugin/fmi3.h"
#include "tests/support/units.h"

using namespace rigstep;
using namespace rigstep::server;
using test::ExportedUnit;
using test::LoadedUnit;
namespace fs = std::filesystem;

namespace {

// one that swings, one with a parameter that may change in the loop
config::LoadedMechanism four_bar() { return test::unit_mechanism("mechanisms/four_bar.textproto"); }
config::LoadedMechanism cart_pole() { return test::unit_mechanism("templates/cart_pole/mechanism.textproto"); }

}  // namespace

TEST_CASE("plugin: units are instantiated on several threads at once") {
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const LoadedUnit unit(four_bar(), version);
    std::vector<std::string> hashes(4);
    std::vector<std::thread> threads;
    for (std::string& hash : hashes)
      threads.emplace_back([&] {
        const auto instance = unit.started();
        for (int k = 0; k < 100; ++k) instance->step(0.001 * k, 0.001);
        hash = instance->get_text(unit.reference("rigstep.state_hash"));
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& hash : hashes) CHECK((hash.size() == 16 && hash == hashes[0]));
  }
}

TEST_CASE("units: a host that loads and unloads units keeps its memory") {
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const ExportedUnit exported(four_bar(), version);
    const Fmu fmu =
        read_fmu(exported.folder.path() / "x", extract_archive(exported.file, exported.folder.path() / "x"));
    const auto load = [&] {
      const FmuBinary binary(fmu);
      instantiate(fmu, binary, "unit")->enter_initialization(0.0, 0.0);
    };
    load();  // what the loader itself keeps
    const std::size_t before = ::mallinfo2().uordblks;
    for (int k = 0; k < 4; ++k) load();
    const std::size_t after = ::mallinfo2().uordblks;
    CHECK(after < before + 40'000);  // one description of messages has 180 kB
  }
}

TEST_CASE("units: a fixed parameter acts from the start and cannot be set afterwards") {
  const config::LoadedMechanism mechanism = config::parse_mechanism(
      "name: \"pendulum\" gravity { z: -9.81 }"
      "body { name: \"rod\" mass: 1 inertia { xx: 0.1 yy: 0.1 zz: 0.1 } position { x: 0.5 } }"
      "joint { name: \"hinge\" type: REVOLUTE first: \"ground\" second: \"rod\" at_start { axis { y: 1 } } }"
      "parameter { name: \"mass\" of: \"rod.mass\" minimum: 0.5 maximum: 2 }"
      "spring { name: \"spring\" between_points { first: \"ground\" first_point { z: 1 } second: \"rod\" } stiffness: "
      "40 }"
      "parameter { name: \"height\" of: \"spring.first_point.z\" minimum: 0.5 maximum: 2 }",
      "pendulum.textproto");
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const LoadedUnit unit(mechanism, version);
    CHECK((unit.variable("height").variability == "fixed" && unit.variable("mass").variability == "tunable"));
    const std::uint32_t height = unit.reference("height");
    const auto hash_with = [&](double value) {
      const auto instance = unit.started("height", value);
      CHECK(instance->step(0.0, 0.01).status == FmuStatus::ok);
      return instance->get_text(unit.reference("rigstep.state_hash"));
    };
    CHECK((hash_with(1.0) == hash_with(1.0) && hash_with(1.0) != hash_with(1.5)));
    const auto instance = instantiate(unit.fmu, unit.binary, "unit");
    CHECK_THROWS_AS(instance->set_reals({height}, {5.0}), FmuError);  // out of range
    const auto started = unit.started();
    started->set_reals({unit.reference("mass")}, {1.5});  // a tunable one
    CHECK_THROWS_WITH_AS(started->set_reals({height}, {1.5}), doctest::Contains("height"), FmuError);
  }
}

TEST_CASE("units: states go on with the same bits, in another instance as well; steps that do not fit say what would") {
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const LoadedUnit unit(cart_pole(), version);
    const std::uint32_t hash = unit.reference("rigstep.state_hash");
    const auto first = unit.started("rail_friction", 8.0), second = instantiate(unit.fmu, unit.binary, "second");
    CHECK(first->step(0.0, 0.1).status <= FmuStatus::warning);  // a hundred internal steps
    const std::vector<std::uint8_t> saved = first->save();
    CHECK(first->step(0.1, 0.1).status <= FmuStatus::warning);
    second->restore(saved);
    CHECK(second->step(0.1, 0.1).status <= FmuStatus::warning);
    CHECK(first->get_text(hash) == second->get_text(hash));
    std::vector<std::uint8_t> damaged = saved;
    damaged[3] ^= 1;
    CHECK_THROWS_AS(second->restore(damaged), FmuError);
    damaged.pop_back();
    CHECK_THROWS_AS(second->restore(damaged), FmuError);
    first->take_messages();  // the other one has ended by the error
    CHECK(first->step(0.2, 0.0015).status == FmuStatus::discard);
    const std::vector<std::string> messages = first->take_messages();
    REQUIRE(messages.size() == 1);
    CHECK(messages[0].find("0.001 s or 0.002 s would do") != std::string::npos);
  }
}

TEST_CASE("units: FMI 3.0, calls in the wrong order are errors and harm nothing") {
  const LoadedUnit unit(four_bar(), FmiVersion::fmi3);
  const auto function = [&]<class F>(F*, const char* name) { return reinterpret_cast<F*>(unit.binary.find(name)); };
#define FUNCTION(name) const auto name##_ = function(static_cast<decltype(&name)>(nullptr), #name)
  FUNCTION(fmi3InstantiateCoSimulation);
  FUNCTION(fmi3EnterInitializationMode);
  FUNCTION(fmi3ExitInitializationMode);
  FUNCTION(fmi3DoStep);
  FUNCTION(fmi3Terminate);
  FUNCTION(fmi3Reset);
  FUNCTION(fmi3EnterEventMode);
  FUNCTION(fmi3EnterConfigurationMode);
  FUNCTION(fmi3ExitConfigurationMode);
  FUNCTION(fmi3EnterStepMode);
  FUNCTION(fmi3EnterContinuousTimeMode);
  FUNCTION(fmi3EvaluateDiscreteStates);
  FUNCTION(fmi3FreeInstance);
  FUNCTION(fmi3SetFloat64);
  const std::string resources = (unit.fmu.folder / "resources").string() + "/";
  CHECK(fmi3InstantiateCoSimulation_("unit", "{another}", resources.c_str(), false, true, false, false, nullptr, 0,
                                     nullptr, nullptr, nullptr) == nullptr);
  CHECK(fmi3InstantiateCoSimulation_("unit", unit.fmu.token.c_str(), "/nowhere/", false, true, false, false, nullptr, 0,
                                     nullptr, nullptr, nullptr) == nullptr);
  const fmi3Instance instance =
      fmi3InstantiateCoSimulation_("unit", unit.fmu.token.c_str(), resources.c_str(), false, false, false, false,
                                   nullptr, 0, nullptr, nullptr, nullptr);
  REQUIRE(instance != nullptr);
  bool event = true, ends = true, early = true;
  double last = -1.0;
  const auto enter = [&] { return fmi3EnterInitializationMode_(instance, false, 0.0, 0.0, false, 0.0); };
  const auto leave = [&] { return fmi3ExitInitializationMode_(instance); };
  const auto step = [&](double time) { return fmi3DoStep_(instance, time, 0.001, true, &event, &ends, &early, &last); };
  // in every state those that no unit without events has
  const auto others_fail = [&] {
    for (const auto& f : {fmi3EnterEventMode_, fmi3EnterConfigurationMode_, fmi3ExitConfigurationMode_,
                          fmi3EnterStepMode_, fmi3EnterContinuousTimeMode_, fmi3EvaluateDiscreteStates_})
      CHECK(f(instance) == fmi3Error);
  };
  others_fail();  // instantiated
  CHECK((leave() == fmi3Error && step(0.0) == fmi3Error && fmi3Terminate_(instance) == fmi3Error));
  CHECK((!event && !ends && !early && last == 0.0));  // set whatever happens
  REQUIRE(enter() == fmi3OK);
  others_fail();  // initialization mode
  CHECK((enter() == fmi3Error && step(0.0) == fmi3Error && fmi3Terminate_(instance) == fmi3Error));
  REQUIRE(leave() == fmi3OK);
  others_fail();  // step mode
  CHECK((enter() == fmi3Error && leave() == fmi3Error));
  CHECK(step(0.0) == fmi3OK);
  CHECK(step(0.5) == fmi3Discard);  // it is at 0.001 s
  CHECK(last == 0.001);
  CHECK(step(0.001) == fmi3OK);
  REQUIRE(fmi3Terminate_(instance) == fmi3OK);
  others_fail();  // terminated
  CHECK((enter() == fmi3Error && leave() == fmi3Error && step(0.002) == fmi3Error &&
         fmi3Terminate_(instance) == fmi3Error));
  REQUIRE(fmi3Reset_(instance) == fmi3OK);
  REQUIRE((enter() == fmi3OK && leave() == fmi3OK && step(0.0) == fmi3OK));
  const fmi3ValueReference output = unit.reference("phi"), nothing = 1'000'000;
  const double value = 1.0;
  CHECK(fmi3SetFloat64_(instance, &output, 1, &value, 1) == fmi3Error);  // terminates, 2.3.1
  CHECK((step(0.001) == fmi3Error && fmi3Reset_(instance) == fmi3OK));
  CHECK(fmi3SetFloat64_(instance, &nothing, 1, &value, 1) == fmi3Error);
  fmi3FreeInstance_(instance);
  fmi3FreeInstance_(nullptr);
#undef FUNCTION
}

TEST_CASE("units: FMI 2.0, calls in the wrong order are errors and harm nothing") {
  const LoadedUnit unit(four_bar(), FmiVersion::fmi2);
  const auto function = [&]<class F>(F*, const char* name) { return reinterpret_cast<F*>(unit.binary.find(name)); };
#define FUNCTION(name) const auto name##_ = function(static_cast<decltype(&name)>(nullptr), #name)
  FUNCTION(fmi2Instantiate);
  FUNCTION(fmi2SetupExperiment);
  FUNCTION(fmi2EnterInitializationMode);
  FUNCTION(fmi2ExitInitializationMode);
  FUNCTION(fmi2DoStep);
  FUNCTION(fmi2Terminate);
  FUNCTION(fmi2Reset);
  FUNCTION(fmi2GetReal);
  FUNCTION(fmi2SetReal);
  FUNCTION(fmi2GetStatus);
  FUNCTION(fmi2GetRealStatus);
  FUNCTION(fmi2CancelStep);
  FUNCTION(fmi2FreeInstance);
  const std::string resources = "file://" + (unit.fmu.folder / "resources").string();
  const fmi2CallbackFunctions callbacks{nullptr, std::calloc, std::free, nullptr, nullptr};
  CHECK(fmi2Instantiate_("unit", fmi2CoSimulation, "{another}", resources.c_str(), &callbacks, 0, 1) == nullptr);
  CHECK(fmi2Instantiate_("unit", fmi2ModelExchange, unit.fmu.token.c_str(), resources.c_str(), &callbacks, 0, 1) ==
        nullptr);
  CHECK(fmi2Instantiate_("unit", fmi2CoSimulation, unit.fmu.token.c_str(), resources.c_str(), nullptr, 0, 1) ==
        nullptr);
  const fmi2Component c =
      fmi2Instantiate_("unit", fmi2CoSimulation, unit.fmu.token.c_str(), resources.c_str(), &callbacks, 0, 0);
  REQUIRE(c != nullptr);
  const fmi2ValueReference phi = unit.reference("phi"), drive = unit.reference("drive");
  double value = 0.0;
  const auto setup = [&] { return fmi2SetupExperiment_(c, 0, 0.0, 0.0, 0, 0.0); };
  const auto step = [&](double time, double size) { return fmi2DoStep_(c, time, size, 0); };
  const auto get = [&] { return fmi2GetReal_(c, &phi, 1, &value); };
  const auto set = [&] { return fmi2SetReal_(c, &drive, 1, &value); };
  CHECK((fmi2ExitInitializationMode_(c) == fmi2Error && step(0.0, 0.001) == fmi2Error &&
         fmi2Terminate_(c) == fmi2Error && get() == fmi2Error));
  REQUIRE((setup() == fmi2OK && fmi2EnterInitializationMode_(c) == fmi2OK));
  CHECK((setup() == fmi2Error && fmi2EnterInitializationMode_(c) == fmi2Error && step(0.0, 0.001) == fmi2Error &&
         fmi2Terminate_(c) == fmi2Error));
  CHECK(get() == fmi2OK);
  REQUIRE(fmi2ExitInitializationMode_(c) == fmi2OK);
  CHECK((setup() == fmi2Error && fmi2EnterInitializationMode_(c) == fmi2Error &&
         fmi2ExitInitializationMode_(c) == fmi2Error));
  CHECK((fmi2CancelStep_(c) == fmi2Error && set() == fmi2OK && step(0.0, 0.001) == fmi2OK && get() == fmi2OK));
  CHECK(step(0.001, 0.0005) == fmi2Discard);  // now after a step that failed
  fmi2Status status = fmi2OK;
  double last = 0.0;
  CHECK((fmi2GetStatus_(c, fmi2DoStepStatus, &status) == fmi2OK && status == fmi2Discard));
  CHECK((fmi2GetRealStatus_(c, fmi2LastSuccessfulTime, &last) == fmi2OK && last == 0.001));
  CHECK((step(0.001, 0.001) == fmi2Error && set() == fmi2Error && get() == fmi2OK));
  REQUIRE(fmi2Terminate_(c) == fmi2OK);
  CHECK((fmi2Terminate_(c) == fmi2Error && step(0.001, 0.001) == fmi2Error && set() == fmi2Error && get() == fmi2OK));
  REQUIRE((fmi2Reset_(c) == fmi2OK && setup() == fmi2OK && fmi2EnterInitializationMode_(c) == fmi2OK));
  fmi2FreeInstance_(c);
#undef FUNCTION
}

TEST_CASE("units: a step that fails is discarded, names the body, and leaves the last good state") {
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const LoadedUnit unit(cart_pole(), version);
    const std::vector<std::uint32_t> seen{unit.reference("time"), unit.reference("angle"), unit.reference("speed")};
    const std::uint32_t hash = unit.reference("rigstep.state_hash"), force = unit.reference("force");
    const auto instance = unit.started();
    CHECK(instance->step(0.0, 0.01).status == FmuStatus::ok);
    std::vector<double> before(3), after(3);
    instance->get_reals(seen, before);
    const std::string state = instance->get_text(hash);
    const std::vector<std::uint8_t> saved = instance->save();
    instance->set_reals({force}, {1e300});
    instance->take_messages();
    const FmuStep step = instance->step(0.01, 0.01);
    CHECK((step.status == FmuStatus::discard && step.last_time == doctest::Approx(0.01) && !step.ends));
    const std::vector<std::string> messages = instance->take_messages();
    REQUIRE(messages.size() == 1);
    CHECK(messages[0].find("step 11 is not finite at body cart: the state stays at step 10") != std::string::npos);
    instance->get_reals(seen, after);
    CHECK((before == after && instance->get_text(hash) == state));
    instance->restore(saved);
    instance->set_reals({force}, {0.0});
    CHECK(instance->step(0.01, 0.01).status == FmuStatus::ok);
  }
}

TEST_CASE("units: FMI 3.0, where an early return is allowed, what was reached before a step that fails is kept") {
  const LoadedUnit unit(cart_pole(), FmiVersion::fmi3);
  const auto function = [&]<class F>(F*, const char* name) { return reinterpret_cast<F*>(unit.binary.find(name)); };
#define FUNCTION(name) const auto name##_ = function(static_cast<decltype(&name)>(nullptr), #name)
  FUNCTION(fmi3InstantiateCoSimulation);
  FUNCTION(fmi3EnterInitializationMode);
  FUNCTION(fmi3ExitInitializationMode);
  FUNCTION(fmi3SetFloat64);
  FUNCTION(fmi3GetFloat64);
  FUNCTION(fmi3DoStep);
  FUNCTION(fmi3FreeInstance);
#undef FUNCTION
  const std::string resources = (unit.fmu.folder / "resources").string() + "/";
  const fmi3ValueReference force = unit.reference("force"), time = unit.reference("time");
  for (const bool is_allowed : {true, false}) {
    const fmi3Instance instance =
        fmi3InstantiateCoSimulation_("unit", unit.fmu.token.c_str(), resources.c_str(), false, false, false, is_allowed,
                                     nullptr, 0, nullptr, nullptr, nullptr);
    REQUIRE(instance != nullptr);
    REQUIRE((fmi3EnterInitializationMode_(instance, false, 0.0, 0.0, false, 0.0) == fmi3OK &&
             fmi3ExitInitializationMode_(instance) == fmi3OK));
    const double push = 1e6;  // the first steps can be made, later ones are too long
    CHECK(fmi3SetFloat64_(instance, &force, 1, &push, 1) == fmi3OK);
    bool event = true, ends = true, early = !is_allowed;
    double last = -1.0, now = -1.0;
    const fmi3Status status = fmi3DoStep_(instance, 0.0, 1.0, true, &event, &ends, &early, &last);
    CHECK(status == (is_allowed ? fmi3OK : fmi3Discard));
    CHECK((early == is_allowed && !event && !ends && last > 0.0 && last < 1.0));
    CHECK(fmi3GetFloat64_(instance, &time, 1, &now, 1) == fmi3OK);
    CHECK(now == last);
    const double release = 0.0;
    CHECK(fmi3SetFloat64_(instance, &force, 1, &release, 1) == fmi3OK);
    fmi3FreeInstance_(instance);
  }
}

namespace {

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Opened for a change of a few entries; the others are copied as they are.
struct Zip {
  zip_t* archive;
  explicit Zip(const fs::path& path) : archive(zip_open(path.c_str(), 0, nullptr)) { REQUIRE(archive != nullptr); }
  ~Zip() { CHECK(zip_close(archive) == 0); }
};

void replace_content(const Zip& zip, std::size_t file, const std::string& text) {
  void* const copy = std::memcpy(std::malloc(text.size() + 1), text.data(), text.size());
  zip_source_t* const source = zip_source_buffer(zip.archive, copy, text.size(), 1);  // which frees it
  CHECK(zip_file_replace(zip.archive, file, source, 0) == 0);
}

// Of half a thousand times as many bytes as a description: deflated and extracted again, each mutation would take
// several times as long. Both standards allow stored entries.
void store_binary(const fs::path& unit, std::size_t binary) {
  const Zip zip(unit);
  REQUIRE(zip_set_file_compression(zip.archive, binary, ZIP_CM_STORE, 0) == 0);
}

// A unit that is sound, and the files in it. The binary is the last one.
struct SoundUnit {
  ExportedUnit exported;
  std::vector<ArchiveFile> files;

  SoundUnit(const config::LoadedMechanism& mechanism, FmiVersion version) : exported(mechanism, version) {
    const fs::path folder = exported.folder.path() / "all";
    for (const std::string& name : extract_archive(exported.file, folder).names)
      files.push_back({name, bytes_of(folder / name)});
    store_binary(exported.file, files.size() - 1);
  }
};

// One of the ways in which a unit may be wrong.
void damage(std::mt19937& random, const SoundUnit& sound, const fs::path& to) {
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  fs::copy_file(sound.exported.file, to, fs::copy_options::overwrite_existing);
  if (below(2) == 0) {  // of the archive's bytes: cut off, or changed near its ends, where its tables are
    if (below(4) == 0) fs::resize_file(to, below(fs::file_size(to)));
    std::fstream bytes(to, std::ios::in | std::ios::out | std::ios::binary);
    const std::size_t size = fs::file_size(to);
    for (std::size_t k = below(8) + 1; k > 0 && size > 0; --k) {
      const std::size_t at = below(std::min<std::size_t>(size, 3000));
      bytes.seekp(static_cast<std::streamoff>(below(2) == 0 ? at : size - 1 - at));
      bytes.put(static_cast<char>(below(256)));
    }
    return;
  }
  const Zip zip(to);  // of the files: text changed, one missing, one whose name leads outside
  switch (below(4)) {
    case 0:
      CHECK(zip_delete(zip.archive, below(sound.files.size())) == 0);
      break;
    case 1:
      CHECK(zip_file_rename(zip.archive, below(sound.files.size()), "../outside", ZIP_FL_ENC_UTF_8) == 0);
      break;
    default:
      const std::size_t file = below(sound.files.size() - 1);  // not the binary
      std::string text = sound.files[file].content;
      for (std::size_t k = below(20) + 1; k > 0 && !text.empty(); --k)
        if (const std::size_t at = below(text.size()); below(3) == 0)
          text.erase(at, below(40));
        else
          text[at] = static_cast<char>(below(256));
      replace_content(zip, file, text);
  }
}

}  // namespace

TEST_CASE("units: FMI 2.0, after an error the last good state stands, with parameters that were set before the start") {
  const LoadedUnit unit(cart_pole(), FmiVersion::fmi2);
  const auto instance = unit.started("rail_friction", *unit.variable("rail_friction").maximum);
  CHECK(instance->step(0.0, 0.05).status == FmuStatus::ok);
  const std::vector<std::uint32_t> all{unit.reference("time"), unit.reference("angle")};
  std::vector<double> before(2), after(2);
  instance->get_reals(all, before);
  CHECK_THROWS_AS(instance->set_reals({unit.reference("angle")}, {1.0}), FmuError);  // an output
  instance->get_reals(all, after);
  CHECK((before == after && before[0] == doctest::Approx(0.05)));
}

TEST_CASE("units: a name of the binary that leads outside is refused before anything is loaded") {
  Fmu unit;
  for (const char* name : {"../../outside", "/tmp/outside", "a/b", "", "1st", "a.b"}) {
    unit.model_identifier = name;
    CHECK_THROWS_AS(unit.binary(), FmuError);
  }
  unit.model_identifier = "four_bar2";
  CHECK(unit.binary().filename() == "four_bar2.so");
}

TEST_CASE("units: what breaks the standard is told of a unit that cannot be loaded, too") {
  const SoundUnit sound(cart_pole(), FmiVersion::fmi3);
  {
    const Zip zip(sound.exported.file);
    std::string text = sound.files.front().content;
    text.replace(text.find("causality=\"input\""), 17, "causality=\"inward\"");
    replace_content(zip, 0, text);
    CHECK(zip_delete(zip.archive, sound.files.size() - 1) == 0);
  }
  try {
    simulate_fmu(sound.exported.file, {});
    FAIL("it has no binary");
  } catch (const FmuError& error) {
    CHECK(std::ranges::any_of(error.violations,
                              [](const std::string& text) { return text.find("inward") != text.npos; }));
  }
}

TEST_CASE("units: damaged ones end in an error, never in a crash, and write nothing outside") {
  const config::LoadedMechanism mechanism = cart_pole();
  std::mt19937 random(27);
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const SoundUnit sound(mechanism, version);
    const fs::path folder = sound.exported.folder.path(), file = folder / "damaged.fmu";
    const long mutations = test::count_of(50, 5000);
    int refused = 0;
    for (long k = 0; k < mutations; ++k) {
      damage(random, sound, file);
      std::cout.flush();  // or the child writes it, too
      const pid_t child = ::fork();
      if (child == 0) {  // foreign code may end the process: not this one
        ::alarm(20);
        FmuRun run;
        run.stop_time = 0.003;
        run.step_size = 0.001;
        try {
          const FmuRunResult result = simulate_fmu(file, run);
          ::_exit(result.failure.empty() && result.violations.empty() ? 0 : 1);
        } catch (const std::exception&) {
          ::_exit(1);
        }
      }
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CAPTURE(k);
      REQUIRE(WIFEXITED(status));
      refused += WEXITSTATUS(status) != 0;
    }
    CHECK(refused > mutations / 2);  // some changes are harmless: a letter of the documentation
    CHECK(!fs::exists(folder.parent_path() / "outside"));
  }
}
