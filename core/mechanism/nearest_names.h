// What somebody may have meant who wrote a name that is not known. Load time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rigstep {

// Letters to insert, delete or replace on the way from one name to the other (Levenshtein), upper and lower case alike.
std::size_t edit_distance(std::string_view from, std::string_view to);

// Up to `most` of the names, the nearest first; those that share nothing with `name` come last.
std::vector<std::string> nearest_names(const std::vector<std::string>& names, std::string_view name,
                                       std::size_t most = 3);

// "a", "b", "c"
std::string quoted_list(const std::vector<std::string>& names);

}  // namespace rigstep
