#include "actors/log/rebuild.hpp"

#include "actors/log/id_source.hpp"
#include "actors/log/log_format.hpp"
#include "actors/log/token_hash.hpp"
#include "protocol/codec/server_codec.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::actors {

namespace {

using protocol::session_state;
using tl::unexpected;

tl::unexpected<log_problem> problem(log_problem words) {
  return unexpected(std::move(words));
}

tl::expected<log_reader, log_problem> reader_of(std::string_view log) {
  log_reader in(log);
  switch (in.header()) {
  case log_reader::verdict::good: return in;
  case log_reader::verdict::other_version: return problem("it was written by a version with another format");
  case log_reader::verdict::not_a_log: break;
  }
  return problem("it is not the log of a session, or its beginning is damaged");
}

/// Repeats what happened.
class repeater {
public:
  repeater(const rebuild_terms& terms, const log_survey& known, std::chrono::nanoseconds last)
      : terms_(terms), sent_(terms.resume_bytes), kept_(terms.most_replay_bytes),
        token_(std::make_shared<std::optional<std::string>>(terms.shown_token)), begin_(known.begin) {
    // The wall clock may have been set back.
    const std::chrono::nanoseconds passed(terms.now_ns - begin_.accepted_ns);
    accepted_ = terms.now - std::max(passed, last);
    protocol::session_origin origin{{}, begin_.session_id, begin_.legacy_id, {}, accepted_};
    if (!begin_.mode.empty()) origin.mode = begin_.mode;
    if (!begin_.recording_id.empty()) origin.recording_id = begin_.recording_id;
    machine_ = std::make_unique<protocol::session_machine>(
        std::move(origin), begin_.limits, begin_.able, id_source(begin_.id_seed),
        [token = token_, fresh = terms.fresh_tokens] { return *token ? **token : fresh(); });
    machine_->start(accepted_);
    if (machine_->state() == session_state::queued) machine_->on_granted(accepted_);
  }

  /// False if the session was not in a state in which this can happen.
  bool repeat(timed_record&& record) {
    at_ = record.at;
    if (machine_->state() == session_state::closed) return false;
    return std::visit([this](auto&& what) { return again(std::forward<decltype(what)>(what)); },
                      std::move(record.what));
  }

  tl::expected<rebuilt_session, log_problem> finish() && {
    if (machine_->state() == session_state::closed) return problem("it was over");
    if (!active() || !machine_->resumable()) return problem("its conversation had not begun");
    if (attempts_ >= most_attempts) return problem("the process ended twice at the same work");
    if (!kept_.whole()) return problem("it is longer than limits.journal_bytes");
    auto first = machine_->on_taken_up(terms_.now);
    auto due = machine_->tick(terms_.now);
    if (machine_->state() == session_state::closed) return problem("its time is over");
    std::move(due.begin(), due.end(), std::back_inserter(first));
    token_->reset();
    return rebuilt_session{std::move(begin_),       accepted_,        terms_.now,
                           std::move(machine_),     std::move(sent_), std::move(kept_),
                           std::move(opened_with_), std::move(first)};
  }

private:
  protocol::time_point now() const { return accepted_ + at_; }
  bool active() const { return machine_->state() == session_state::active; }

  bool again(logged::beginning&&) { return false; } // there is one
  bool again(logged::frame&& frame) { return take(machine_->on_frame(*frame.text, now())); }

  bool again(logged::engine_word&& word) {
    const bool opens = std::holds_alternative<conversation::opened>(word.event);
    if (machine_->state() != (opens ? session_state::initializing : session_state::active)) return false;
    kept_.note(word.event);
    if (!kept_.awaits_answer()) attempts_ = 0;
    return take(machine_->on_engine(std::move(word.event), now()));
  }

  bool again(logged::worker_news&& news) {
    if (!active()) return false;
    switch (news.what) {
    case logged::worker_change::granted: return take(machine_->on_granted(now()));
    case logged::worker_change::lost: return take(machine_->on_worker_lost(now()));
    case logged::worker_change::restored: return take(machine_->on_restored(now()));
    }
    return false;
  }

  bool again(logged::tick&&) { return take(machine_->tick(now())); }
  bool again(logged::drain&&) { return active() && take(machine_->on_drain(now())); }
  bool again(logged::tokens&&) { return true; }

  bool again(logged::user_turn&& turn) {
    return static_cast<std::size_t>(turn.heard.result) < std::size(protocol::transcript_result_words) &&
           take(machine_->on_transcript(turn.heard, now()));
  }

  bool again(logged::resumed&&) {
    auto welcome = machine_->on_resume({terms_.shown_token, 0}, 0, now());
    return welcome && take(*std::move(welcome));
  }

  bool again(logged::handed_over&& word) {
    return active() && take(machine_->on_handover(std::chrono::milliseconds(word.back_after_ms), now()));
  }

  bool again(logged::taken_up&&) {
    if (!active()) return false;
    attempts_ = kept_.awaits_answer() ? attempts_ + 1 : 0;
    return take(machine_->on_taken_up(now())) && take(machine_->tick(now()));
  }

  bool take(protocol::effects&& effects) {
    for (auto& effect : effects) std::visit([this](auto& each) { carry_out(each); }, effect);
    return true;
  }

  void carry_out(const protocol::send& effect) {
    if (effect.event_id == 0) return;
    protocol::encode_context context;
    context.spoken = effect.spoken;
    context.session_id = effect.session_id;
    context.legacy_extras = terms_.legacy_extras;
    context.event_id = effect.event_id;
    constexpr std::int64_t in_millisecond = 1'000'000;
    const auto sent_ms = (begin_.accepted_ns + at_.count()) / in_millisecond;
    context.send_time_s = static_cast<double>(sent_ms) / 1000;
    sent_.keep(effect.event_id, std::make_shared<const std::string>(protocol::encode(effect.event, context)));
  }
  void carry_out(const protocol::open_engine& order) {
    opened_with_ = order;
    kept_.enter(order.order);
  }
  void carry_out(conversation::submit_unit& order) { kept_.enter(std::move(order)); }
  void carry_out(conversation::submit_turn& order) { kept_.enter(std::move(order)); }
  void carry_out(const auto&) {} // concerns a client or a worker of the past

  const rebuild_terms& terms_;
  protocol::sent_events sent_;
  replay_buffer kept_;
  std::shared_ptr<std::optional<std::string>> token_; ///< the client's; none = a fresh one
  logged::beginning begin_;
  protocol::time_point accepted_;
  std::unique_ptr<protocol::session_machine> machine_;
  protocol::open_engine opened_with_;
  std::chrono::nanoseconds at_{};
  int attempts_ = 0; ///< how many processes took it up and ended while at the same work
};

} // namespace

tl::expected<logged::beginning, log_problem> first_record(std::string_view log) {
  auto in = reader_of(log);
  if (!in) return unexpected(std::move(in.error()));
  const auto bytes = in->next();
  auto record = bytes ? unpack_record(*bytes) : std::nullopt;
  auto* begin = record ? std::get_if<logged::beginning>(&record->what) : nullptr;
  if (!begin) return problem("its first record is damaged");
  return std::move(*begin);
}

tl::expected<log_survey, log_problem> survey(std::string_view log) {
  auto begin = first_record(log);
  if (!begin) return unexpected(std::move(begin.error()));
  log_survey known{*std::move(begin), {}, 0, 0};
  auto in = *reader_of(log);
  in.next();
  while (const auto bytes = in.next()) {
    if (kind_of<logged::frame>(*bytes)) known.valid.used = {}; // the client has the newest token
    if (kind_of<logged::taken_up>(*bytes)) ++known.taken_up;
    if (kind_of<logged::tokens>(*bytes) || kind_of<logged::resumed>(*bytes)) {
      const auto record = unpack_record(*bytes);
      if (!record) break;
      if (const auto* tokens = std::get_if<logged::tokens>(&record->what)) known.valid = *tokens;
      if (const auto* resumed = std::get_if<logged::resumed>(&record->what)) known.valid = resumed->valid;
    }
  }
  known.good_bytes = in.good_bytes();
  return known;
}

log_outline outline(const log_source& log, std::string_view token) {
  constexpr std::size_t window = 4096;      // holds several small records, and is little of a large one
  constexpr std::size_t kind_bytes = 9;     // as in `time_of` and `index_of`
  constexpr std::size_t longest_kind = 512; // of a record with tokens
  log_outline known;
  if (log_reader(log(log_header_bytes, 0)).header() != log_reader::verdict::good) return known;
  std::string bytes;
  for (std::size_t from = 0, at = log_header_bytes;;) {
    if (bytes.empty() || at < from || at - from + log_frame_bytes + longest_kind > bytes.size())
      bytes = log(window, from = at);
    const auto rest = std::string_view(bytes).substr(std::min(at - from, bytes.size()));
    const auto length = record_length(rest);
    if (!length || rest.size() < log_frame_bytes + std::min(*length, kind_bytes)) return known;
    const auto record = rest.substr(log_frame_bytes, *length);
    if (kind_of<logged::taken_up>(record)) ++known.taken_up;
    if (record.size() == *length && (kind_of<logged::tokens>(record) || kind_of<logged::resumed>(record))) {
      const auto whole = unpack_record(record);
      const auto* tokens = whole ? std::get_if<logged::tokens>(&whole->what) : nullptr;
      const auto* resumed = whole ? std::get_if<logged::resumed>(&whole->what) : nullptr;
      if ((tokens && opens(*tokens, token)) || (resumed && opens(resumed->valid, token))) known.knew_token = true;
    }
    at += log_frame_bytes + *length;
  }
}

tl::expected<rebuilt_session, log_problem> rebuild(std::string_view log, const rebuild_terms& terms) {
  auto known = survey(log);
  if (!known) return unexpected(std::move(known.error()));
  std::chrono::nanoseconds last{};
  auto in = *reader_of(log);
  in.next();
  while (const auto bytes = in.next()) last = std::max(last, time_of(*bytes));
  repeater session(terms, *known, last);
  in = *reader_of(log);
  in.next();
  while (const auto bytes = in.next()) {
    auto record = unpack_record(*bytes);
    if (!record || !session.repeat(std::move(*record))) return problem("its records contradict each other");
  }
  return std::move(session).finish();
}

} // namespace parley::actors
