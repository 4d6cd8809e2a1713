#include "inference/chat/answer.hpp"

#include "base/assert.hpp"
#include "inference/llm/token_scores.hpp"
#include "inference/temperature.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace parley::inference::chat {

namespace {

llm::chat_sampling sampling_of(const submit_turn& turn) {
  llm::chat_sampling o;
  o.greedy = turn.do_sample == false;
  o.temperature = turn.temperature.value_or(o.temperature);
  o.top_k = turn.top_k.value_or(o.top_k);
  o.top_p = turn.top_p.value_or(o.top_p);
  o.length_penalty = turn.length_penalty;
  return o;
}

std::optional<token_id> likeliest_of(std::span<float> logits) {
  return static_cast<token_id>(std::ranges::max_element(logits) - logits.begin());
}

std::optional<token_id> likeliest_of(const llm::short_row& row) {
  return row.ids[static_cast<std::size_t>(std::ranges::max_element(row.logits) - row.logits.begin())];
}

bool restrict_row(constraint& by, std::span<float> logits, std::int64_t left) {
  by.restrict(logits, left);
  return true;
}

bool restrict_row(constraint& by, llm::short_row& row, std::int64_t left) {
  return by.restrict(row, left);
}

void make_impossible(std::span<float> logits, token_id id) {
  logits[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
}

void make_impossible(llm::short_row& row, token_id id) {
  const auto found = std::ranges::find(row.ids, id);
  if (found != row.ids.end()) make_impossible(row.logits, found - row.ids.begin());
}

/// The answer to a short row that does not suffice.
template<class Token>
Token needs_whole_row() {
  return Token{};
}

} // namespace

answer::answer(std::shared_ptr<const submit_turn> turn, setting with, opening how)
    : turn_(std::move(turn)), with_(std::move(with)), grammar_(std::move(how.grammar)), sampling_(sampling_of(*turn_)),
      decoder_(with_.text, with_.how, turn_->max_new_tokens), undecided_(how.undecided) {
  if (turn_->seed) chance_.emplace(*turn_->seed, substream::text);
  if (!turn_->tools.empty()) calls_.emplace();
  if (const auto& replay = turn_->replay)
    told_ = {replay->sampled.size(), replay->scores, replay->call_pieces, replay->text_bytes};
  ban_marks();
  if (!turn_->stop.empty()) stop_.emplace(turn_->stop);
  if (must_obey()) constrain();
}

bool answer::begins_as_speech() const {
  return !must_obey() && !undecided_;
}

/// What has begun as speech stays speech: no call can follow.
void answer::speak() {
  speaks_ = true;
  unspeakable_ = with_.ids.unspeakable;
  for (const auto mark : tool_marks)
    if (const auto id = with_.text.find(mark)) unspeakable_.push_back(*id);
}

// ---- drawing

/// Drawing changes the row, so what is scored is a copy.
token_id answer::draw(std::span<float> logits, const drawing& with) {
  if (turn_->scored) row_.assign(logits.begin(), logits.end());
  return draw_from<token_id>(logits, with);
}

std::optional<token_id> answer::draw_listed(llm::short_row logits, const drawing& with) {
  if (turn_->scored) return std::nullopt;
  return draw_from<std::optional<token_id>>(std::move(logits), with);
}

/// The tokens that would show a reader the marks of calls. Where a call may begin, its first one is none of them.
void answer::ban_marks() {
  marks_out_of_calls_.clear();
  for (const auto mark : tool_marks)
    if (const auto id = with_.text.find(mark); id && !(calls_ && mark == call_begin))
      marks_out_of_calls_.push_back(*id);
}

/// Its first token has decided that it is an answer in JSON, and no call, where it may be either.
bool answer::has_begun_json() const {
  const auto& tokens = decoder_.tokens();
  return constraint_ && !turn_->tool_required && tokens.size() == 1 &&
         !with_.text.bytes(tokens.front()).starts_with(call_begin.front());
}

std::span<const token_id> answer::banned_now() const {
  if (speaks_) return unspeakable_;
  if (calls_ && (constraint_ || calls_->in_call())) return {};
  return marks_out_of_calls_;
}

/// From here on its words obey the grammar.
void answer::constrain() {
  constraint_.emplace(grammar_, with_.text);
}

/// From a whole row, or a short one.
template<class Token, class Row>
Token answer::draw_from(Row logits, const drawing& with) {
  auto& chance = chance_ ? *chance_ : with.chance;
  if (const auto& replay = turn_->replay; replay && drawn_.size() < replay->sampled.size()) {
    if (!undecided_ && !sampling_.greedy && !takes_the_likeliest(sampling_.temperature)) chance.next();
    return replay->sampled[drawn_.size()];
  }
  if (undecided_) {
    const auto call = with_.text.find(call_begin);
    return call && likeliest_of(logits) == call ? *call : with_.text.id("<|tts_bos|>");
  }
  const auto banned = banned_now();
  if (constraint_) {
    for (const auto id : banned) make_impossible(logits, id);
    if (!restrict_row(*constraint_, logits, std::min(decoder_.left(), with.room))) return needs_whole_row<Token>();
  }
  return llm::draw_chat(std::move(logits), banned, with_.ids.terminators, decoder_.seen(), sampling_, chance,
                        with.scratch);
}

// ---- what came of it

answer::news answer::take(token_id token, bool full) {
  drawn_.push_back(token);
  if (std::exchange(undecided_, false) && token == with_.text.id("<|tts_bos|>")) return {true, {}, {}, false};
  decoder_.sampled(token, with_.ids.terminators);
  if (calls_ && has_begun_json()) {
    calls_.reset();
    ban_marks();
  }
  if (constraint_) follow_constraint(token);
  auto over = decoder_.finished() || full;
  if (full) decoder_.end();
  auto text = decoder_.take_text();
  if (calls_) text = read_calls(std::move(text), over);
  text = marks_.push(text);
  if (over) text += marks_.finish();
  keep_score();
  if (stop_) {
    text = stop_->push(text);
    if (stop_->found())
      decoder_.complete_here();
    else if (over)
      text += stop_->finish();
    over = over || stop_->found();
  }
  text_ += text;
  const auto again = std::min(told_.bytes, text.size());
  told_.bytes -= again;
  if (over) reason_ = decoder_.complete() ? finish_reason::turn_end : finish_reason::length;
  return {false, text.substr(again), untold_calls(), over};
}

/// Of the newest token, if it is one of the answer's text: not of what ends it, and of no call.
void answer::keep_score() {
  const auto& tokens = decoder_.tokens();
  if (!turn_->scored || scores_.size() == tokens.size()) return;
  scores_.emplace_back();
  const bool shown = with_.how.chat_text_shows_special_tokens || !with_.text.is_special(tokens.back());
  if (!shown || (calls_ && (calls_->in_call() || !calls_->calls().empty()))) return;
  scores_.back() = llm::score(row_, tokens.back(), *turn_->scored, with_.text);
}

/// Whether the grammar is complete.
void answer::follow_constraint(token_id token) {
  PARLEY_ASSERT(constraint_, "a grammar is being obeyed");
  if (decoder_.complete() || !constraint_->take_token(token)) return constraint_.reset();
  if (!constraint_->done()) return;
  constraint_.reset();
  if (must_obey()) decoder_.complete_here();
}

/// What of the text is none of a call. From where a call begins, it obeys the grammar, unless it does not already.
std::string answer::read_calls(std::string text, bool over) {
  PARLEY_ASSERT(calls_, "a turn with functions may call them");
  auto& calls = *calls_;
  const bool before = calls.in_call();
  text = calls.push(text);
  if (over) text += calls.finish();
  if (calls.in_call() && !before && !constraint_) {
    constrain();
    if (constraint_ && !constraint_->take(calls.call_so_far())) constraint_.reset();
  }
  return text;
}

// ---- what is told

std::size_t answer::certain() const {
  const auto all = decoder_.tokens().size();
  return stop_ ? std::min(stop_->tokens_told(), all) : all;
}

std::vector<std::int64_t> answer::take_drawn() {
  std::vector<std::int64_t> fresh;
  if (told_.drawn < drawn_.size())
    fresh.assign(drawn_.begin() + static_cast<std::ptrdiff_t>(told_.drawn), drawn_.end());
  told_.drawn = std::max(told_.drawn, drawn_.size());
  return fresh;
}

/// Those of the tokens whose words are certain.
std::vector<token_score> answer::take_scores() {
  std::vector<token_score> fresh;
  for (const auto end = std::min(certain(), scores_.size()); scores_passed_ < end; ++scores_passed_) {
    auto& score = scores_[scores_passed_];
    if (!score) continue;
    if (told_.scores > 0)
      --told_.scores; // before the turn was replayed
    else
      fresh.push_back(*std::move(score));
  }
  return fresh;
}

/// What is new of the calls, if it is wanted in pieces.
std::vector<parley::conversation::call_piece> answer::untold_calls() {
  if (!calls_ || !turn_->call_pieces) return {};
  auto fresh = calls_->take_pieces();
  const auto again = std::min(told_.calls, fresh.size()); // sent before the turn was replayed
  told_.calls -= again;
  fresh.erase(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(again));
  return fresh;
}

std::vector<parley::conversation::tool_call> answer::take_calls() {
  return calls_ ? std::exchange(calls_->calls(), {}) : std::vector<parley::conversation::tool_call>();
}

} // namespace parley::inference::chat
