#include "actors/log/log_store.hpp"

#include "actors/log/log_format.hpp"
#include "actors/log/token_hash.hpp"
#include "actors/logger.hpp"
#include "actors/unix_time.hpp"
#include "base/assert.hpp"
#include "base/printable.hpp"
#include "protocol/ids.hpp"

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace parley::actors {

namespace {

constexpr std::string_view ending = ".session";
constexpr std::string_view copy_ending = ".copy";
constexpr std::chrono::seconds sweep_pause{1};

/// How long the writer waits for more of a conversation's seconds before it writes the first: waking it costs as much as
/// writing a small record. A killed process loses what came in that time, and its clients send it again (docs/protocol.md
/// 14). What they come back with is not waited for.
constexpr std::chrono::milliseconds gather{20};

/// How much of a file is read to list it, and in order to take it up.
constexpr std::size_t most_to_list = 1u << 16;
constexpr std::size_t most_to_take_up = longest_log;

/// About what a record holds in memory.
std::size_t bytes_of(const log_record& record) {
  constexpr std::size_t small = 512;
  if (const auto* frame = std::get_if<logged::frame>(&record)) return small + frame->text->size();
  const auto* word = std::get_if<logged::engine_word>(&record);
  if (!word) return small;
  const auto* sound = conversation::sound_of(word->event);
  return small + (sound && *sound ? (*sound)->size() * sizeof(float) : 0);
}

/// Whether the client had this token at some time. Little is read for that: only then is the whole log worth it.
bool knows_token(const std::filesystem::path& log, std::string_view token) {
  const file_reader file(log);
  return outline([&](std::size_t most, std::size_t from) { return file.read(most, from).value_or(""); }, token)
      .knew_token;
}

std::string words_of(int error) {
  return std::generic_category().message(error);
}

} // namespace

/// Its file is used on the writer's thread alone.
struct durable_log::shared_file {
  session_name session;
  std::filesystem::path path;
  log_file file;
  std::size_t size = 0;
  std::atomic<bool> lost{false};
};

log_store::log_store(options with, log_meter& counted)
    : with_(std::move(with)), counted_(counted), lock_(lock_folder(with_.folder)),
      schedule_(most_unconfirmed, largest_piece), copied_(longest_log, with_.most_copied), writer_({.gather = gather}),
      readers_({.pause = sweep_pause, .idle = [this] { sweep(); }}) {
  list();
}

log_store::~log_store() = default;

// ---- live sessions

std::filesystem::path log_store::path_of(const std::string& session_id) const {
  PARLEY_ASSERT(protocol::is_session_id(session_id), "an id leads to a file of the folder");
  return with_.folder / (session_id + std::string(ending));
}

std::filesystem::path log_store::copy_path_of(const std::string& session_id) const {
  PARLEY_ASSERT(protocol::is_session_id(session_id), "an id leads to a file of the folder");
  return with_.folder / (session_id + std::string(copy_ending));
}

std::unique_ptr<durable_log> log_store::begin(const logged::beginning& first, protocol::time_point accepted) {
  auto file = std::make_shared<durable_log::shared_file>();
  file->session = {first.session_id, first.id_seed};
  file->path = path_of(first.session_id);
  counted_.sessions.Increment();
  own(file->session, {0, with_.node});
  std::unique_ptr<durable_log> log(new durable_log(*this, file, accepted));
  writer_.post([this, file] {
    if (file->lost) return;
    file->file = log_file::create(file->path);
    if (!file->file || !file->file.append(log_header(), {}, false)) lose(*file, words_of(errno));
    if (file->lost) return clear(*file);
    file->size = log_header().size();
    schedule_.begin(file->session, 0);
  });
  log->note(first, accepted);
  return log;
}

void log_store::write(durable_log::shared_file& to, const timed_record& record) {
  if (to.lost) return clear(to);
  const auto bytes = pack(record);
  if (bytes.size() > max_record_bytes) {
    lose(to, "a record is too long");
    return clear(to);
  }
  const auto frame = record_frame(bytes);
  if (!to.file.append({frame.data(), frame.size()}, bytes, with_.sync)) {
    lose(to, words_of(errno));
    return clear(to);
  }
  const auto written = frame.size() + bytes.size();
  counted_.bytes.Increment(static_cast<double>(written));
  to.size += written;
  schedule_.grew(to.session.id, to.size);
  send_copies();
}

/// Frees the disk.
void log_store::clear(durable_log::shared_file& what) {
  end_copy(what.session, true);
  what.file = log_file();
  std::error_code ignored;
  std::filesystem::remove(what.path, ignored);
}

/// From any thread. The session goes on, but ends with this process.
void log_store::lose(durable_log::shared_file& what, const std::string& why) {
  if (what.lost.exchange(true)) return;
  counted_.sessions.Decrement();
  counted_.lost.Increment();
  if (!complained_.exchange(true))
    log()->error("journal.dir: {}; sessions that cannot be kept end with this process (this is logged once)", why);
}

/// Returns how many bytes wait for the disk. From any thread, as the next.
std::size_t log_store::now_waiting(std::size_t bytes) {
  counted_.waiting_bytes.Increment(static_cast<double>(bytes));
  return waiting_.fetch_add(bytes) + bytes;
}

void log_store::no_longer_waiting(std::size_t bytes) {
  waiting_ -= bytes;
  counted_.waiting_bytes.Decrement(static_cast<double>(bytes));
}

durable_log::durable_log(log_store& store, std::shared_ptr<shared_file> file, protocol::time_point accepted)
    : store_(store), file_(std::move(file)), accepted_(accepted) {}

bool durable_log::kept() const {
  return !file_->lost;
}

void durable_log::note(log_record what, protocol::time_point now) {
  if (file_->lost) return;
  const auto bytes = bytes_of(what);
  if (store_.now_waiting(bytes) > store_.with_.most_waiting) {
    store_.no_longer_waiting(bytes);
    store_.lose(*file_, "the disk is too slow");
    store_.writer_.post([&store = store_, file = file_] { store.clear(*file); });
    return;
  }
  const bool second = std::holds_alternative<logged::frame>(what) || std::holds_alternative<logged::engine_word>(what);
  auto write = [&store = store_, file = file_, bytes, record = timed_record{now - accepted_, std::move(what)}] {
    try {
      store.write(*file, record);
    } catch (const std::exception& problem) { // out of memory
      store.lose(*file, problem.what());
      store.clear(*file);
    }
    store.no_longer_waiting(bytes);
  };
  store_.writer_.post(std::move(write), second ? task_thread::when::soon : task_thread::when::at_once);
}

durable_log::~durable_log() {
  store_.disown(file_->session);
  if (file_->lost) return;
  store_.counted_.sessions.Decrement();
  if (leaves_) return;
  file_->lost = true; // what still waits is not written
  store_.writer_.post([&store = store_, file = file_] { store.clear(*file); });
}

// ---- sessions of earlier processes

/// Those that nobody comes back for are removed after a while in which clients could (`sweep`). How long ago a file was written
/// only counts for what cannot be listed: the clock may have been set.
void log_store::list() {
  const auto too_old = std::filesystem::file_time_type::clock::now() - with_.resume - with_.longest;
  const std::lock_guard lock(mutex_);
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(with_.folder, problem)) {
    const bool copied = entry.path().extension() == copy_ending;
    if (!copied && entry.path().extension() != ending) continue;
    const auto bytes = read_part(entry.path(), most_to_list);
    const auto first = bytes ? first_record(*bytes) : tl::unexpected(log_problem("it cannot be read"));
    if (first && entry.path() == (copied ? copy_path_of(first->session_id) : path_of(first->session_id))) {
      list(first->session_id, {entry.path(), first->key, 0, {}});
      continue;
    }
    std::error_code unknown;
    if (const auto written = entry.last_write_time(unknown); !unknown && written < too_old) {
      remove(entry.path());
      continue;
    }
    log()->warn("journal.dir: {} is left out: {}", base::printable(entry.path().filename().string()),
                first ? "its name is not its session's" : first.error());
  }
  if (!left_.empty()) log()->info("journal.dir: {} sessions wait for their clients", left_.size());
  for (const auto& [id, each] : left_) {
    std::error_code gone;
    const auto size = std::filesystem::file_size(each.path, gone);
    if (each.path == copy_path_of(id)) copied_.count(id, 0, gone ? 0 : static_cast<std::size_t>(size));
  }
}

/// Of a session's own log and a copy, the one that was taken up more often is listed.
void log_store::list(const std::string& session_id, left what) {
  const auto [at, fresh] = left_.emplace(session_id, what);
  if (fresh) return;
  if (taken_up_in(at->second.path) < taken_up_in(what.path)) std::swap(at->second, what);
  remove(what.path);
}

void log_store::remove(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

bool log_store::overdue(const left& what, std::chrono::steady_clock::time_point now) const {
  if (what.link != 0) return false;
  const auto since = what.alone_since ? what.alone_since : opened_at_;
  return since && now - *since >= with_.resume;
}

/// Removes the sessions whose clients have not come back in time.
void log_store::sweep() {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (left_.empty()) return;
  if (!opened_at_ && with_.open_for_clients()) opened_at_ = now;
  const auto given_up = std::erase_if(left_, [&](const auto& each) {
    if (!overdue(each.second, now)) return false;
    remove(each.second.path);
    copied_.remove(each.first);
    return true;
  });
  if (given_up > 0) log()->info("journal.dir: {} sessions are given up: their clients have not come back", given_up);
}

bool log_store::holds(const std::string& session_id) const {
  const std::lock_guard lock(mutex_);
  return left_.contains(session_id);
}

bool log_store::take_up(claim of, rebuild_terms terms, std::function<void(std::optional<taken>)> done) {
  return readers_.post([this, of = std::move(of), terms = std::move(terms), done = std::move(done)]() mutable {
    std::optional<taken> found;
    try {
      found = read(of, std::move(terms));
    } catch (const std::exception& problem) {
      found = give_up(of, problem.what());
    }
    const bool taken_up = found.has_value();
    done(std::move(found));
    if (taken_up) forget(of.session_id);
  });
}

std::optional<log_store::left> log_store::find(const claim& of) const {
  const std::lock_guard lock(mutex_);
  const auto found = left_.find(of.session_id);
  if (found == left_.end() || found->second.key != of.key) return std::nullopt;
  return found->second;
}

std::optional<log_store::taken> log_store::read(const claim& of, rebuild_terms&& terms) {
  const auto found = find(of);
  if (!found || !knows_token(found->path, of.token)) return std::nullopt;
  const auto bytes = read_part(found->path, most_to_take_up);
  if (!bytes) return give_up(of, "it cannot be read");
  const auto known = survey(*bytes);
  if (!known) return give_up(of, known.error());
  if (!opens(known->valid, of.token)) return std::nullopt;
  terms.now = std::chrono::steady_clock::now();
  terms.now_ns = unix_ns();
  auto session = rebuild(*bytes, terms);
  if (!session) return give_up(of, session.error());
  const auto epoch = known->taken_up + 1;
  auto file = std::make_shared<durable_log::shared_file>();
  file->session = {of.session_id, known->begin.id_seed};
  file->path = make_own(file->session, found->path, epoch);
  file->file = log_file::reopen(file->path, known->good_bytes);
  file->size = known->good_bytes;
  counted_.sessions.Increment();
  if (!file->file) lose(*file, words_of(errno));
  counted_.taken_up.Increment();
  writer_.post([this, session = file->session, epoch] { schedule_.begin(session, epoch); });
  std::unique_ptr<durable_log> log(new durable_log(*this, std::move(file), session->accepted));
  log->note(logged::taken_up{}, session->now);
  return taken{*std::move(session), std::move(log)};
}

/// Nobody can take it up any more.
std::optional<log_store::taken> log_store::give_up(const claim& of, const log_problem& why) {
  const log_session about(of.session_id);
  log()->warn("cannot be taken up: {}", why);
  counted_.refused.Increment();
  remove(path_of(of.session_id));
  drop_copy(of.session_id);
  forget(of.session_id);
  return std::nullopt;
}

void log_store::forget(const std::string& session_id) {
  copied_.remove(session_id);
  const std::lock_guard lock(mutex_);
  left_.erase(session_id);
}

} // namespace parley::actors
