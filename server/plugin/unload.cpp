// What a host gets back when it unloads a plugin: the memory of libraries that stand in it and are made for programs,
// which keep theirs to the end.
#include <google/protobuf/stubs/common.h>

namespace __gnu_cxx {
void __freeres();  // of libstdc++: the reserve for exceptions where no memory is left
}

namespace {

[[gnu::destructor]] void give_back() {
  google::protobuf::ShutdownProtobufLibrary();
  __gnu_cxx::__freeres();
}

}  // namespace
