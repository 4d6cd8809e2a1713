#include "actors/recording/recorder.hpp"

#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/recording/thread_priority.hpp"

#include <exception>
#include <utility>

namespace parley::actors {

namespace {

/// Limits the events kept before the first client event: of a long wait's queue updates, the newest are enough.
constexpr std::size_t most_before = 64;

} // namespace

recorder::recorder(caf::actor_config& config, std::filesystem::path directory, recorder_feed& feed,
                   recording_meter& counted, archivist_actor archivist)
    : recorder_actor::base(config), directory_(std::move(directory)), feed_(feed), counted_(counted),
      archivist_(std::move(archivist)) {}

recorder::behavior_type recorder::make_behavior() {
  log_exceptions(this);
  lower_thread_priority();
  return {
      [this](const recording_begins& order) { begin(order); },
      [this](const recording_event& event) { write(event); },
      [this](const recording_ends& order) { end(order); },
      [this](const recorder_stops&) {
        stopping_ = true;
        quit_if_done();
      },
  };
}

void recorder::on_exit() {
  open_.clear();
  caf::anon_send(archivist_, archivist_stops{});
  archivist_ = nullptr;
}

template<class Work>
void recorder::on_disk(open_recording& of, Work work) {
  if (of.failed) return;
  const log_session about(of.facts.id);
  try {
    work();
  } catch (const std::exception& problem) {
    of.failed = true;
    counted_.failed.Increment();
    log()->warn("the recording ends: {}", problem.what());
    if (!of.folder) return feed_.forgotten(of.facts.id);
    auto facts = of.folder->facts();
    facts.state = "failed";
    facts.reason = problem.what();
    of.folder.reset();
    send(archivist_, recording_noted{std::move(facts)});
  }
}

void recorder::begin(const recording_begins& order) {
  open_[order.number].facts = order.facts;
}

void recorder::write(const recording_event& event) {
  const auto found = open_.find(event.number);
  const std::size_t bytes = event.frame->size();
  if (found != open_.end()) {
    auto& of = found->second;
    if (!of.folder && !of.failed && event.from == speaker::server) {
      if (of.before.size() == most_before) of.before.erase(of.before.begin() + most_before / 2);
      of.before.push_back(event);
    } else {
      on_disk(of, [&] {
        if (!of.folder) {
          of.folder = std::make_unique<recording_folder>(directory_, of.facts);
          send(archivist_, recording_noted{of.folder->facts()});
          for (const auto& each : std::exchange(of.before, {}))
            of.folder->write(each.from, each.t_ms, *each.frame, each.media);
        }
        of.folder->write(event.from, event.t_ms, *event.frame, event.media);
      });
    }
  }
  feed_.written(bytes);
}

void recorder::end(const recording_ends& order) {
  auto node = open_.extract(order.number);
  if (!node.empty()) {
    auto& of = node.mapped();
    if (of.folder) {
      on_disk(of, [&] {
        of.folder->finish("closed", order.mode, order.reason, order.seconds, order.dropped);
        send(archivist_, recording_noted{of.folder->facts()});
      });
    } else if (!of.failed) {
      feed_.forgotten(of.facts.id);
    }
  }
  quit_if_done();
}

void recorder::quit_if_done() {
  if (stopping_ && open_.empty()) quit();
}

} // namespace parley::actors
