#include "inference/verify/chat_replay.hpp"

#include "inference/decoding/answer_decoder.hpp"
#include "inference/duplex/frame_rows.hpp"
#include "inference/verify/golden_pictures.hpp"
#include "inference/verify/recorded_draws.hpp"
#include "inference/vision/placeholder.hpp"

#include <ATen/ATen.h>

#include <numeric>
#include <set>

namespace parley::inference::verify {

namespace {

using nlohmann::json;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (auto c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

void read_item(golden_set& files, const std::string& item, const picture_arguments& how, recorded_talk& talk,
               chat::rendered_text& content, std::vector<float>& joined) {
  if (item.starts_with("img:")) {
    content.attach(chat::medium::image, talk.pictures.size());
    talk.pictures.push_back(cut_picture(files, item.substr(4), how.max_slice_nums));
    return;
  }
  if (!item.starts_with("aud:")) {
    content.quote(item);
    return;
  }
  auto parts = split(item, ':');
  auto whole = parts.size() == 2;
  auto sound = files.clip(parts.at(1), whole ? 0 : std::stoll(parts.at(2)), whole ? 0 : std::stoll(parts.at(3)));
  content.attach(chat::medium::audio, talk.sounds.size());
  joined.insert(joined.end(), sound.begin(), sound.end());
  talk.sounds.push_back(std::move(sound));
}

std::vector<float> last_logits(const llm::qwen3& model, const at::Tensor& hidden) {
  auto row = model.logits(hidden.narrow(0, hidden.size(0) - 1, 1)).squeeze(0).cpu().contiguous();
  return {row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel()};
}

} // namespace

picture_arguments picture_arguments::of(const json& kwargs) {
  return {kwargs.value("max_slice_nums", json()), kwargs.value("use_image_id", json())};
}

recorded_talk read_talk(golden_set& files, const json& messages, std::string_view separator,
                        const picture_arguments& how) {
  recorded_talk talk;
  talk.use_image_id = how.use_image_id.is_null() ? files.config().vision.use_image_id : how.use_image_id.get<bool>();
  for (const auto& m : messages) {
    auto from = m.at("role").get<std::string>();
    chat::rendered_text content;
    std::vector<float> joined;
    auto items = m.at("content").is_string() ? json::array({m["content"]}) : m["content"];
    for (auto i = std::size_t{0}; i < items.size(); ++i) {
      if (i > 0) content.add(separator);
      read_item(files, items[i], how, talk, content, joined);
    }
    auto who = from == "system" ? role::system : from == "user" ? role::user : role::assistant;
    talk.messages.push_back({who, std::move(content)});
    if (!joined.empty()) talk.joined.push_back(std::move(joined));
  }
  return talk;
}

std::string stripped_answer(const tokenizer& text, std::vector<token_id> tokens, std::string& raw) {
  std::erase(tokens, 0);
  if (!tokens.empty() && (tokens.back() == text.eos() || tokens.back() == text.id("<|endoftext|>"))) tokens.pop_back();
  raw = text.decode(tokens);
  auto end = raw.find_last_not_of("<|tts_eos>");
  return end == std::string::npos ? "" : raw.substr(0, end + 1);
}

chat_replay::chat_replay(const thinker& which)
    : model(which), cache(llm::kv_pool(which.config().llm, 1, 8192, which.llm().dtype(), which.llm().device()).open()) {
}

chat::prompt_ids chat_replay::encode(const chat::rendered_text& text, const recorded_talk& talk,
                                     bool by_seconds) const {
  chat::placeholders media;
  for (const auto& sound : talk.sounds)
    media.audio.push_back(chat::audio_placeholder(sound.size(), model.config().audio.pool_step, by_seconds));
  for (const auto& picture : talk.pictures) {
    auto number = talk.use_image_id ? std::optional(media.image.size()) : std::nullopt;
    media.image.push_back(vision::image_placeholder(picture.grid, model.config().vision.query_num, number));
  }
  return chat::encode_prompt(model.text(), text, media, false);
}

at::Tensor chat_replay::prefill(const chat::prompt_ids& prompt, const recorded_talk& talk) {
  std::vector<std::span<const float>> clips(talk.joined.begin(), talk.joined.end());
  at::Tensor seen;
  if (!talk.pictures.empty()) seen = model.sight().see(duplex::pieces_of(talk.pictures)).flatten(0, 1);
  return feed_rows(chat::embed_prompt(model.llm(), prompt, model.hear_clips(clips), seen));
}

at::Tensor chat_replay::feed_rows(const at::Tensor& rows) {
  llm::sequence_rows input{&cache, rows.size(0)};
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows.size(0)));
  std::iota(all.begin(), all.end(), 0);
  return model.llm().forward(rows, {&input, 1}, all);
}

at::Tensor chat_replay::feed(std::span<const token_id> ids) {
  return feed_rows(model.llm().embed(ids));
}

bool chat_replay::ends(token_id id) const {
  return id == model.text().eos() || id == model.text().id("<|endoftext|>");
}

std::vector<token_id> chat_replay::generate(const at::Tensor& hidden, int max_new_tokens, double penalty,
                                            std::vector<at::Tensor>* states) {
  llm::chat_sampling options;
  options.greedy = true;
  options.repetition_penalty = penalty;
  recorded_draws chance({});
  return draw_answer(hidden, max_new_tokens, options, chance, states);
}

std::vector<token_id> chat_replay::draw_answer(const at::Tensor& hidden, int max_new_tokens,
                                               const llm::chat_sampling& options, random_source& chance,
                                               std::vector<at::Tensor>* states,
                                               std::vector<llm::draw_record>* records) {
  llm::sampling_scratch scratch;
  scratch.records = records;
  std::vector<token_id> tokens;
  for (auto last = hidden;;) {
    auto row = last_logits(model.llm(), last);
    tokens.push_back(llm::draw_chat(row, {}, {}, tokens, options, chance, scratch));
    if (ends(tokens.back()) || std::ssize(tokens) == max_new_tokens) return tokens;
    last = feed({&tokens.back(), 1});
    if (states) states->push_back(last);
  }
}

std::vector<token_id> chat_replay::search_beams(const at::Tensor& hidden, int beams, int max_new_tokens,
                                                double penalty) {
  struct beam {
    std::vector<token_id> tokens;
    double score = 0;
  };
  auto prompt = cache.length();
  auto per_token = [](const beam& b) { return b.score / static_cast<double>(b.tokens.size()); };
  auto better = [](const beam& a, const beam& b) { return a.score > b.score; };
  std::vector<beam> running(1), finished;
  for (auto step = 1; step <= max_new_tokens; ++step) {
    std::vector<beam> candidates;
    for (const auto& b : running) {
      auto last = hidden;
      if (!b.tokens.empty()) {
        cache.truncate(prompt);
        last = feed(b.tokens);
      }
      auto logits = model.llm().logits(last.narrow(0, last.size(0) - 1, 1)).squeeze(0);
      auto scores = at::log_softmax(logits.cpu(), -1).contiguous();
      std::vector<float> row(scores.const_data_ptr<float>(), scores.const_data_ptr<float>() + scores.numel());
      for (auto id : std::set<token_id>(b.tokens.begin(), b.tokens.end())) {
        auto& score = row[static_cast<std::size_t>(id)];
        score = static_cast<float>(score > 0 ? score / penalty : score * penalty);
      }
      for (auto id = std::size_t{0}; id < row.size(); ++id) {
        candidates.push_back({b.tokens, b.score + row[id]});
        candidates.back().tokens.push_back(static_cast<token_id>(id));
      }
      std::sort(candidates.begin(), candidates.end(), better);
      candidates.resize(static_cast<std::size_t>(2 * beams));
    }
    running.clear();
    for (auto rank = 0; rank < std::ssize(candidates); ++rank) {
      auto& c = candidates[static_cast<std::size_t>(rank)];
      if (!ends(c.tokens.back())) {
        if (std::ssize(running) < beams) running.push_back(std::move(c));
      } else if (rank < beams) {
        finished.push_back(std::move(c));
      }
    }
    std::sort(finished.begin(), finished.end(),
              [&](const beam& a, const beam& b) { return per_token(a) > per_token(b); });
    if (std::ssize(finished) > beams) finished.resize(static_cast<std::size_t>(beams));
    if (std::ssize(finished) == beams && per_token(finished.back()) >= per_token(running.front())) break;
    if (step == max_new_tokens) finished.insert(finished.end(), running.begin(), running.end());
  }
  return std::max_element(finished.begin(), finished.end(),
                          [&](const beam& a, const beam& b) { return per_token(a) < per_token(b); })
      ->tokens;
}

std::vector<chat_replay::chunk> chat_replay::stream(std::span<const token_id> opening, int max_new_tokens,
                                                    double length_penalty) {
  llm::chat_sampling options;
  options.greedy = true;
  options.length_penalty = length_penalty;
  recorded_draws chance({});
  return stream(opening, max_new_tokens, options, chance, false);
}

std::vector<chat_replay::chunk> chat_replay::stream(std::span<const token_id> opening, int max_new_tokens,
                                                    const llm::chat_sampling& options, random_source& chance,
                                                    bool spoken) {
  auto ids = chat::answer_ids::of(model.text());
  if (!spoken) ids.unspeakable.clear();
  llm::sampling_scratch scratch;
  constexpr auto per_chunk = chat::answer_decoder::chunk_tokens;
  auto chunks = (max_new_tokens + per_chunk - 1) / per_chunk;
  chat::answer_decoder answer(model.text(), quirks::literal(), chunks * per_chunk + 1);
  stream_decoder text(model.text());
  std::vector<chunk> result;
  auto last = feed(opening);
  auto fed = true; // whether the newest token of the answer was fed
  for (auto number = 0; number < chunks && !answer.complete(); ++number) {
    chunk c;
    scratch.records = &c.draws;
    std::vector<at::Tensor> states;
    auto earlier = answer.tokens().size();
    auto size = static_cast<std::size_t>(per_chunk + (number == 0 ? 1 : 0));
    while (answer.tokens().size() - earlier < size) {
      if (!std::exchange(fed, false)) {
        last = feed({&answer.tokens().back(), 1});
        states.push_back(last);
      }
      auto row = last_logits(model.llm(), last);
      auto token = llm::draw_chat(row, ids.unspeakable, ids.terminators, answer.seen(), options, chance, scratch);
      answer.sampled(token, ids.terminators);
      if (answer.complete()) break;
    }
    const auto& all = answer.tokens();
    c.ids.assign(all.begin() + static_cast<std::ptrdiff_t>(earlier), all.end());
    c.finished = answer.complete();
    if (!states.empty()) c.hidden = at::cat(states);
    // Text lags behind by the token that has not been fed yet.
    auto begin = earlier - (number == 0 ? 0 : 1), end = all.size() - (c.finished ? 0 : 1);
    c.text = text.push(std::span(all).subspan(begin, end - begin));
    if (c.finished) c.text += text.finish();
    result.push_back(std::move(c));
  }
  return result;
}

} // namespace parley::inference::verify
