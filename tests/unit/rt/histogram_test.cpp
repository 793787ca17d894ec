#include "rt/histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace rigstep::rt {
namespace {

// The definition, on the values themselves.
std::uint64_t exact_percentile(std::vector<std::int64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(values.size()));
  return static_cast<std::uint64_t>(values[std::max<std::size_t>(1, static_cast<std::size_t>(rank)) - 1]);
}

}  // namespace

TEST_CASE("an empty histogram says zero") {
  const auto histogram = std::make_unique<Histogram>();
  CHECK(histogram->count() == 0);
  CHECK(histogram->max() == 0);
  CHECK(histogram->percentile(50.0) == 0);
}

TEST_CASE("each value is counted in the quarter of an octave that holds it") {
  const auto begin_of = [](int quarter) {
    return quarter < 4 ? 32.0 * quarter : std::exp2(quarter / 4 + 6) * (1.0 + (quarter % 4) / 4.0);
  };
  for (const std::int64_t value : {0, 31, 32, 255, 256, 319, 320, 1000, 123'456, 1'000'000'007}) {
    CAPTURE(value);
    const auto histogram = std::make_unique<Histogram>();
    histogram->record(value, 3);
    const auto counts = histogram->quarters();
    for (int q = 0; q < Histogram::kQuarters; ++q) {
      const bool is_there = static_cast<double>(value) >= begin_of(q) && static_cast<double>(value) < begin_of(q + 1);
      REQUIRE(counts[static_cast<std::size_t>(q)] == (is_there ? 3u : 0u));
    }
  }
}

TEST_CASE("small values are exact") {
  const auto histogram = std::make_unique<Histogram>();
  for (std::int64_t value = 0; value < 256; ++value) histogram->record(value);
  CHECK(histogram->count() == 256);
  CHECK(histogram->max() == 255);
  for (int value = 0; value < 256; ++value) {
    REQUIRE(histogram->percentile(100.0 * (value + 1) / 256.0) == static_cast<std::uint64_t>(value));
  }
}

TEST_CASE("a lone value is told within 1 percent wherever it lies, and never rounded down") {
  for (std::int64_t value = 1; value < 17'000'000'000; value += 1 + value / 37) {
    const auto histogram = std::make_unique<Histogram>();
    histogram->record(value);
    histogram->record(20'000'000'000);  // so that max() does not mend the rounding
    const double told = static_cast<double>(histogram->percentile(50.0));
    REQUIRE(told >= static_cast<double>(value));
    REQUIRE(told <= 1.01 * static_cast<double>(value));
  }
}

TEST_CASE("percentiles of injected delays are those of the sorted values within 1 percent") {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> delay_ns(std::log(50'000.0), 1.5);
  const auto histogram = std::make_unique<Histogram>();
  std::vector<std::int64_t> values;
  for (int sample = 0; sample < 100'000; ++sample) {
    values.push_back(static_cast<std::int64_t>(delay_ns(random)));
    histogram->record(values.back());
  }
  CHECK(histogram->count() == values.size());
  CHECK(histogram->max() == static_cast<std::uint64_t>(*std::max_element(values.begin(), values.end())));
  for (const double percent : {0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const double exact = static_cast<double>(exact_percentile(values, percent));
    const double told = static_cast<double>(histogram->percentile(percent));
    CAPTURE(percent);
    CHECK(told >= exact);
    CHECK(told <= 1.01 * exact);
  }
}

TEST_CASE("a thousand good ticks and ten late ones: the tail begins exactly where the late ones do") {
  const auto histogram = std::make_unique<Histogram>();
  for (int tick = 0; tick < 990; ++tick) histogram->record(100);
  for (int tick = 0; tick < 10; ++tick) histogram->record(3'000'000);
  CHECK(histogram->percentile(99.0) == 100);
  CHECK(histogram->percentile(99.1) == 3'000'000);
  CHECK(histogram->max() == 3'000'000);
}

TEST_CASE("values beyond the range and below zero are counted, not dropped") {
  const auto histogram = std::make_unique<Histogram>();
  histogram->record(std::numeric_limits<std::int64_t>::max());
  histogram->record(-5);
  CHECK(histogram->count() == 2);
  CHECK(histogram->percentile(50.0) == 0);
  CHECK(histogram->percentile(100.0) == static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
}

TEST_CASE("skipped deadlines count with the latency they would have had, as many as there were") {
  const auto histogram = std::make_unique<Histogram>();
  record_with_skipped(*histogram, 250, 100, 3, 2);  // 350 450 550 before, 150 50 after
  CHECK(histogram->count() == 6);
  CHECK(histogram->max() == 550);
  CHECK(histogram->percentile(1.0) == 50);
  CHECK(histogram->percentile(50.0) == 250);

  const auto many = std::make_unique<Histogram>();
  record_with_skipped(*many, 0, 10, 1'000'003, 0);
  CHECK(many->count() == 1'000'004);
  CHECK(many->max() <= 10 * 1'000'003);
  CHECK(static_cast<double>(many->percentile(50.0)) == doctest::Approx(5e6).epsilon(0.02));
}

}  // namespace rigstep::rt
