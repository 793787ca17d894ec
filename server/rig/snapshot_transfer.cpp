#include "server/rig/snapshot_transfer.h"

#include <sodium.h>

#include <algorithm>

#include "server/network_error.h"

namespace rigstep::server {

namespace {

std::uint64_t new_transfer() {
  std::uint64_t number = 0;
  while (number == 0) randombytes_buf(&number, sizeof number);
  return number;
}

// Repeats `request` until a piece of this transfer satisfies `use`.
void exchange_piece(ClientSession& link, const TakeDatagram& take, std::uint64_t transfer, double timeout_s,
                    const std::function<void()>& request, const std::function<bool(const wire::SnapshotPiece&)>& use) {
  const bool is_answered = link.ask(timeout_s, request, [&](const ClientSession::Arrival& arrival) {
    if (take(arrival) != wire::DecodeStatus::ok) return false;
    const wire::ServerToRig& message = *link.codec().message();
    const auto words = [&](const std::string& text) {
      return NetworkError(link.socket().server() + " refuses: " + wire::printable(text, wire::kMaxTextBytes));
    };
    if (message.has_refusal()) throw words(message.refusal().text());
    if (message.has_goodbye()) throw words(message.goodbye().text());
    return message.has_snapshot_piece() && message.snapshot_piece().transfer() == transfer &&
           use(message.snapshot_piece());
  });
  if (!is_answered) throw NetworkError(link.socket().no_answer());
}

}  // namespace

std::string fetch_snapshot(ClientSession& link, const TakeDatagram& take, double timeout_s) {
  const std::uint64_t transfer = new_transfer();
  std::string bytes;
  std::uint32_t total = 0;
  do {
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    exchange_piece(
        link, take, transfer, timeout_s, [&] { link.send(link.codec().encode_snapshot_query(transfer, offset)); },
        [&](const wire::SnapshotPiece& piece) {
          // without data: the loop makes the snapshot at its next tick
          if (piece.offset() != offset || piece.data().empty() || (offset > 0 && piece.total() != total)) return false;
          total = piece.total();
          bytes += piece.data();
          return true;
        });
  } while (bytes.size() < total);
  return bytes;
}

std::uint64_t send_snapshot(ClientSession& link, const TakeDatagram& take, std::string_view bytes, double timeout_s) {
  wire::SnapshotPiece sent;
  sent.set_transfer(new_transfer());
  sent.set_total(static_cast<std::uint32_t>(bytes.size()));
  while (sent.offset() < bytes.size()) {
    const std::string_view data = bytes.substr(sent.offset(), wire::kSnapshotPieceBytes);
    const auto behind = sent.offset() + static_cast<std::uint32_t>(data.size());
    sent.set_data(data.data(), data.size());
    exchange_piece(
        link, take, sent.transfer(), timeout_s, [&] { link.send(link.codec().encode_snapshot_piece(sent)); },
        [behind](const wire::SnapshotPiece& receipt) { return receipt.offset() == behind; });
    sent.set_offset(behind);
  }
  return sent.transfer();
}

}  // namespace rigstep::server
