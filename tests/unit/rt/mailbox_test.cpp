#include "rt/mailbox.h"

#include <doctest/doctest.h>

#include "core/mechanism/signals.h"

namespace rigstep::rt {

TEST_CASE("an empty mailbox gives nothing and leaves the reader's value alone") {
  Mailbox<int> mailbox;
  int value = 7;
  CHECK_FALSE(mailbox.take(value));
  CHECK(value == 7);
}

TEST_CASE("a published value is taken exactly once") {
  Mailbox<int> mailbox;
  int value = 0;
  mailbox.publish(1);
  CHECK(mailbox.take(value));
  CHECK(value == 1);
  CHECK_FALSE(mailbox.take(value));
  CHECK(value == 1);
}

TEST_CASE("the newest of several published values wins") {
  Mailbox<int> mailbox;
  int value = 0;
  for (int newest = 1; newest <= 5; ++newest) mailbox.publish(newest);
  CHECK(mailbox.take(value));
  CHECK(value == 5);
  CHECK_FALSE(mailbox.take(value));
}

TEST_CASE("any interleaving of publish and take gives the newest value or nothing") {
  Mailbox<int> mailbox;
  int published = 0;
  int taken = 0;
  // bits of the pattern decide between publish and take
  for (unsigned pattern = 0; pattern < 4096; ++pattern) {
    for (int bit = 0; bit < 12; ++bit) {
      if ((pattern >> bit & 1u) != 0) {
        mailbox.publish(++published);
      } else {
        const bool is_new = published != taken;
        REQUIRE(mailbox.take(taken) == is_new);
        REQUIRE(taken == published);
      }
    }
  }
}

TEST_CASE("an input sample passes whole") {
  Mailbox<InputSample> mailbox;
  InputSample sent;
  sent.inputs.count = kMaxChannels;
  sent.inputs.value.back() = 2.5;
  sent.sequence = 9;
  sent.rig_time_ns = -4;
  mailbox.publish(sent);
  InputSample received;
  REQUIRE(mailbox.take(received));
  CHECK(received.inputs.count == kMaxChannels);
  CHECK(received.inputs.value == sent.inputs.value);
  CHECK(received.sequence == 9);
  CHECK(received.rig_time_ns == -4);
}

}  // namespace rigstep::rt
