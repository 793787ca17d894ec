// A text edited to say what a changed message says: only what differs is replaced, so that comments, layout and units
// stay. Load time only.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "proto/text_source.h"

namespace rigstep::config {

struct EditedText {
  std::string text;
  int changed = 0;  // values and parts that were replaced, added or taken out
};

// source: of `file_text` and `before`. Lists of messages have as many elements in `after`.
EditedText edited(const std::string& file_text, const TextSource& source, const google::protobuf::Message& before,
                  const google::protobuf::Message& after);

}  // namespace rigstep::config
