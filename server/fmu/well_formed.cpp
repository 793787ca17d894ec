#include "server/fmu/well_formed.h"

#include <expat.h>
#include <fmt/format.h>

#include <memory>

#include "server/fmu/archive.h"

namespace rigstep::server {

namespace {

struct Seen {
  XML_Parser parser;
  std::string encoding;
  bool has_definitions = false;
};

void see_declaration(void* seen, const XML_Char* /*version*/, const XML_Char* encoding, int /*standalone*/) {
  if (encoding != nullptr) static_cast<Seen*>(seen)->encoding = encoding;
}

void see_document_type(void* user, const XML_Char* /*name*/, const XML_Char* /*system*/, const XML_Char* /*public_id*/,
                       int has_internal_subset) {
  auto& seen = *static_cast<Seen*>(user);
  if (has_internal_subset == 0) return;
  seen.has_definitions = true;
  XML_StopParser(seen.parser, XML_FALSE);
}

}  // namespace

std::string check_well_formed(std::string_view text, std::string_view file) {
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreateNS("UTF-8", ' '),
                                                                       XML_ParserFree);
  if (parser == nullptr) throw std::bad_alloc();
  Seen seen{parser.get(), {}};
  XML_SetUserData(parser.get(), &seen);
  XML_SetXmlDeclHandler(parser.get(), see_declaration);
  XML_SetStartDoctypeDeclHandler(parser.get(), see_document_type);
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) == XML_STATUS_OK)
    return seen.encoding;
  throw FmuError(fmt::format("{}: is no XML that can be read ({} in line {}, column {})", file,
                             seen.has_definitions ? "a document type with definitions, which are not read here"
                                                  : XML_ErrorString(XML_GetErrorCode(parser.get())),
                             XML_GetCurrentLineNumber(parser.get()), XML_GetCurrentColumnNumber(parser.get()) + 1));
}

}  // namespace rigstep::server
