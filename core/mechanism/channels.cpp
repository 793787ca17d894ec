// Channels of a mechanism by name.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/mechanism/checks.h"
#include "core/mechanism/mechanism.h"

namespace rigstep {
namespace {

constexpr std::size_t kNamesInRemedy = 3;

// Letters to insert, delete or replace on the way from one name to the other (Levenshtein).
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, replaced}));
    }
  }
  return row.back();
}

std::string nearest_names(const std::vector<Channel>& channels, std::string_view name) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // distance, channel
  for (std::size_t c = 0; c < channels.size(); ++c) order.emplace_back(edit_distance(name, channels[c].name), c);
  std::sort(order.begin(), order.end());
  std::string names;
  for (std::size_t i = 0; i < std::min(order.size(), kNamesInRemedy); ++i)
    names += (i == 0 ? "" : ", ") + checks::quoted(channels[order[i].second].name);
  return names;
}

int channel_named(const std::vector<Channel>& channels, std::string_view name, const std::string& kind) {
  const auto channel =
      std::find_if(channels.begin(), channels.end(), [name](const Channel& c) { return c.name == name; });
  if (channel != channels.end()) return static_cast<int>(channel - channels.begin());
  throw MechanismError(kind, "no " + kind + " channel is named " + checks::quoted(name),
                       channels.empty() ? "add an " + kind + " to the mechanism"
                                        : "the nearest names are " + nearest_names(channels, name));
}

}  // namespace

int Mechanism::input_channel(std::string_view name) const { return channel_named(input_channels_, name, "input"); }
int Mechanism::output_channel(std::string_view name) const { return channel_named(output_channels_, name, "output"); }

}  // namespace rigstep
