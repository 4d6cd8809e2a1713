#include "inference/engine/tasks/text_jobs.hpp"

#include "inference/chat/call_reader.hpp"
#include "inference/chat/conversation.hpp"
#include "inference/chat/template.hpp"

#include <algorithm>
#include <span>

namespace parley::inference {

namespace {

/// The grammar of a required call, of a call that has begun, or of an answer in JSON; null = there is none.
std::shared_ptr<const grammar::json_grammar> grammar_of(const submit_turn& turn) {
  if (turn.tools.empty() && turn.answer_schema.empty() && !turn.tool_required) return nullptr;
  std::vector<grammar::json_grammar::form> forms;
  if (!turn.answer_schema.empty() && !turn.tool_required) forms.push_back({"", turn.answer_schema, "", true});
  const auto begin = std::string(chat::call_begin).append("\n{\"name\": \"");
  const auto end = std::string("}\n").append(chat::call_end);
  for (const auto& tool : turn.tools)
    if (turn.tool_name.empty() || tool.name == turn.tool_name)
      forms.push_back({std::string(begin).append(tool.name).append("\", \"arguments\": "), tool.parameters, end, true});
  std::ranges::sort(forms, {}, &grammar::json_grammar::form::head);
  const auto same = std::ranges::unique(forms, {}, &grammar::json_grammar::form::head);
  forms.erase(same.begin(), same.end());
  return std::make_shared<const grammar::json_grammar>(forms);
}

} // namespace

bool text_job::work(const std::function<bool()>&) noexcept {
  try {
    ids = tokens.encode(text.text, text.quoted, static_cast<std::size_t>(most));
  } catch (...) {
    trouble = std::current_exception();
  }
  return true;
}

bool turn_job::work(const std::function<bool()>&) noexcept {
  try {
    read();
  } catch (...) {
    trouble = std::current_exception();
  }
  return true;
}

void turn_job::read() {
  const auto& turn = *turn_;
  std::span<const vision::sliced_picture> pictures;
  if (pictures_) pictures = pictures_->pictures;
  auto talk = chat::read_conversation(turn, with_.model.config(), pictures);
  const auto context = with_.options.info.context_tokens;
  if (talk.objection.empty() && !talk.clips.empty() && !with_.model.hears())
    talk.objection = "audio: this model does not hear";
  if (!talk.objection.empty()) return refuse(failure_kind::invalid, talk.objection);
  chat::template_options how;
  how.enable_thinking = turn.enable_thinking;
  how.use_tts_template = turn.use_tts_template || turn.tts || !talk.clips.empty();
  // What must be a call or JSON is not spoken. Otherwise the first token decides, before <|tts_bos|>.
  const bool written = turn.tool_required || !turn.answer_schema.empty();
  undecided = how.use_tts_template && !turn.tools.empty() && !written;
  how.use_tts_template = how.use_tts_template && turn.tools.empty() && !written;
  how.generation_prompt = !with_.options.how.chat_im_end_is_doubled;
  // Checked before tokenizing, so that refusing a prompt that certainly does not fit is cheap.
  const auto too_long = [&](std::int64_t tokens) {
    refuse(failure_kind::context_full, "the messages make at least " + std::to_string(tokens) +
                                           " tokens, the context holds " + std::to_string(context));
  };
  if (const auto least = chat::least_tokens(talk); least >= context) return too_long(least);
  auto text = chat::apply_template(talk.messages, how, turn.tools);
  // The template leaves out what an assistant thought before its answer.
  if (text.attachments.size() < talk.media.audio.size() + talk.media.image.size())
    return refuse(failure_kind::invalid, "messages: a picture or a sound before </think>");
  if (with_.options.how.chat_im_end_is_doubled) text.add("<|im_end|>\n" + chat::generation_prompt(how));
  prompt = chat::encode_prompt(with_.model.text(), text, talk.media, true, static_cast<std::size_t>(context));
  if (std::ssize(prompt.ids) >= context) return too_long(std::ssize(prompt.ids));
  clips = std::move(talk.clips);
  grammar = grammar_of(turn);
}

} // namespace parley::inference
