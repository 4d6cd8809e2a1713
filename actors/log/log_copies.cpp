#include "actors/log/log_format.hpp"
#include "actors/log/log_store.hpp"
#include "actors/logger.hpp"

#include <exception>
#include <future>
#include <system_error>
#include <utility>

// What the gateways' stores say to one another: the live logs are sent to a peer as their files grow; those of others
// are kept like the ones that an earlier process has left here.
namespace parley::actors {

namespace {

/// How many sessions' owners are remembered after their end.
constexpr std::size_t most_once_taken_up = 10'000;

/// What a piece takes besides its bytes.
constexpr std::size_t least_piece_bytes = 512;

/// How much of one link may wait for the readers' thread. Its sender lets less be under way.
constexpr std::size_t most_arriving = 2 * most_unconfirmed;

} // namespace

// ---- who owns what

void log_store::own(const session_name& session, log_owner who) {
  const std::lock_guard lock(mutex_);
  owned_[session] = who;
}

/// The session is over here. If it was taken up once, an earlier owner may still turn up.
void log_store::disown(const session_name& session) {
  const std::lock_guard lock(mutex_);
  const auto found = owned_.find(session);
  if (found == owned_.end()) return;
  if (found->second.epoch == 0) {
    owned_.erase(found);
    return;
  }
  once_taken_up_.push_back(session);
  if (once_taken_up_.size() <= most_once_taken_up) return;
  owned_.erase(once_taken_up_.front());
  once_taken_up_.pop_front();
}

std::optional<log_owner> log_store::owner_here(const session_name& session) const {
  const std::lock_guard lock(mutex_);
  const auto found = owned_.find(session);
  if (found == owned_.end()) return std::nullopt;
  return found->second;
}

/// How often; 0 if the log cannot be read.
std::uint64_t log_store::taken_up_in(const std::filesystem::path& log) {
  const file_reader file(log);
  return outline([&](std::size_t most, std::size_t from) { return file.read(most, from).value_or(""); }, {}).taken_up;
}

// ---- to the peer; on the writer's thread

void log_store::copy_to(piece_sink peer) {
  writer_.post([this, peer = std::move(peer)]() mutable {
    peer_ = std::move(peer);
    if (peer_)
      schedule_.link_up();
    else
      schedule_.link_down();
    send_copies();
  });
}

void log_store::confirm(std::size_t bytes) {
  writer_.post([this, bytes] {
    schedule_.confirmed(bytes);
    send_copies();
  });
}

void log_store::send_copies() {
  while (const auto part = schedule_.next()) {
    auto bytes = read_part(path_of(part->session_id), part->bytes, part->offset);
    session_name whose{part->session_id, part->birth};
    if (!bytes || bytes->size() != part->bytes) {
      schedule_.confirmed(part->bytes);
      counted_.not_copied.Increment();
      end_copy(whose, true);
      continue;
    }
    peer_({std::move(whose), part->epoch, part->offset, *std::move(bytes), false});
  }
  counted_.copied.Set(static_cast<double>(schedule_.complete()));
  counted_.behind_bytes.Set(static_cast<double>(schedule_.behind()));
}

/// False if it was not copied.
bool log_store::end_copy(const session_name& session, bool announce) {
  const bool copied = schedule_.end(session.id);
  if (announce && peer_) peer_({session, 0, 0, {}, true});
  counted_.copied.Set(static_cast<double>(schedule_.complete()));
  counted_.behind_bytes.Set(static_cast<double>(schedule_.behind()));
  return copied;
}

void log_store::refused(const log_refused& of) {
  writer_.post([this, of] {
    const bool copied = end_copy(of.session, false);
    const auto ours = owner_here(of.session);
    const log_session about(of.session.id);
    if (of.newer.epoch == 0) {
      if (!copied) return; // several pieces were under way
      counted_.not_copied.Increment();
      log()->warn("the other gateway cannot keep a copy");
    } else if (ours && *ours < of.newer) {
      log()->info("another gateway has taken it up");
      with_.disowned(of.session.id);
    }
  });
}

// ---- from others; on the readers' thread

/// Whether so many bytes more of this link may wait for the readers' thread. From any thread, as the next.
bool log_store::let_in(std::uint64_t link, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto& waiting = arriving_[link];
  if (waiting + bytes > most_arriving) return false;
  waiting += bytes;
  return true;
}

void log_store::taken_in(std::uint64_t link, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = arriving_.find(link);
  found->second -= bytes;
  if (found->second == 0) arriving_.erase(found);
}

void log_store::receive(copy_source from, log_piece piece, piece_replier reply) {
  const auto bytes = piece.bytes.size() + least_piece_bytes;
  if (!let_in(from.link, bytes)) return reply(log_refused{piece.session, {}});
  [[maybe_unused]] const bool taken =
      readers_.post([this, from, bytes, piece = std::move(piece), reply = std::move(reply)]() mutable {
        const auto arrived = piece.bytes.size();
        const std::shared_ptr<void> under_way(nullptr, [this, &from, bytes](void*) { taken_in(from.link, bytes); });
        try {
          take_piece(from, piece, reply);
        } catch (const std::exception& problem) {
          log()->warn("a copy cannot be kept: {}", problem.what());
          drop_copy(piece.session.id);
          reply(log_refused{piece.session, {}});
        }
        if (arrived > 0) reply(piece_taken{arrived}); // refused or not: it is no longer under way
      });
}

void log_store::take_piece(const copy_source& from, log_piece& piece, const piece_replier& reply) {
  auto known = copies_.find(piece.session.id);
  const bool growing = known != copies_.end() && known->second.from.link == from.link;
  if (piece.over) return growing ? drop_copy(piece.session.id) : void();
  const log_owner theirs{piece.epoch, from.node};
  const auto ours = owner_here(piece.session);
  if (ours && *ours > theirs) return reply(log_refused{piece.session, *ours});
  if (ours && *ours < theirs) with_.disowned(piece.session.id);
  if (piece.offset == 0) {
    if (!begin_copy(from, piece)) return reply(log_refused{piece.session, {}});
    known = copies_.find(piece.session.id);
    known->second.reply = reply;
  } else if (!growing || known->second.size != piece.offset) {
    return reply(log_refused{piece.session, {}});
  }
  if (!copied_.add(piece.session.id, from.link, piece.bytes.size()) ||
      !known->second.file.append(piece.bytes, {}, false)) {
    drop_copy(piece.session.id);
    return reply(log_refused{piece.session, {}});
  }
  known->second.size += piece.bytes.size();
}

/// False if the log cannot be used. What an earlier process or link has left of the session makes room.
bool log_store::begin_copy(const copy_source& from, const log_piece& piece) {
  const auto first = first_record(piece.bytes);
  if (!first || first->session_id != piece.session.id || first->id_seed != piece.session.birth) return false;
  drop_copy(piece.session.id);
  if (holds(piece.session.id)) { // as an earlier process of this gateway left it
    if (taken_up_in(path_of(piece.session.id)) > piece.epoch) return false;
    remove(path_of(piece.session.id));
  }
  copy fresh{log_file::create(copy_path_of(piece.session.id)), 0, from, piece.epoch, {}};
  if (!fresh.file) return false;
  copies_.insert_or_assign(piece.session.id, std::move(fresh));
  const std::lock_guard lock(mutex_);
  left_.insert_or_assign(piece.session.id, left{copy_path_of(piece.session.id), first->key, from.link, {}});
  return true;
}

void log_store::drop_copy(const std::string& session_id) {
  copies_.erase(session_id);
  copied_.remove(session_id);
  remove(copy_path_of(session_id));
  const std::lock_guard lock(mutex_);
  if (const auto found = left_.find(session_id); found != left_.end() && found->second.path == copy_path_of(session_id))
    left_.erase(found);
}

void log_store::sender_gone(std::uint64_t link) {
  [[maybe_unused]] const bool taken = readers_.post([this, link] {
    std::erase_if(copies_, [link](const auto& each) { return each.second.from.link == link; });
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    for (auto& [id, each] : left_)
      if (each.link == link) {
        each.link = 0;
        each.alone_since = now;
      }
  });
}

/// This gateway takes the session over: it keeps the log as its own from now on and tells the gateway that still sends it.
std::filesystem::path log_store::make_own(const session_name& session, const std::filesystem::path& path,
                                          std::uint64_t epoch) {
  const log_owner ours{epoch, with_.node};
  own(session, ours);
  if (const auto growing = copies_.extract(session.id)) growing.mapped().reply(log_refused{session, ours});
  auto own_path = path_of(session.id);
  if (path == own_path) return own_path;
  copied_.remove(session.id);
  // The session may have lived here before: the removal of that log must not meet this one.
  std::promise<void> written;
  if (writer_.post([&] { written.set_value(); })) written.get_future().wait();
  std::error_code problem;
  std::filesystem::rename(path, own_path, problem);
  return problem ? path : own_path;
}

} // namespace parley::actors
