// Whether a text is XML at all, by the parser that refuses everything else: pugixml, which the rest of the program
// reads descriptions with, takes much that is none. Offline.
#pragma once

#include <string>
#include <string_view>

namespace rigstep::server {

// Throws FmuError with the place of what is wrong: an entity that is not defined, a second element at the top, bytes
// that are no UTF-8, a prefix without a namespace. file: for the message. Definitions in a document type are refused:
// no description has them, and entities that grow come with them.
// Returns the encoding that the text declares; empty: none.
std::string check_well_formed(std::string_view text, std::string_view file);

}  // namespace rigstep::server
