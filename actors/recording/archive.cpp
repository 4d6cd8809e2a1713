#include "actors/recording/archive.hpp"

#include "actors/recording/archivist.hpp"
#include "actors/recording/recorder.hpp"
#include "actors/recording/recording_index.hpp"
#include "base/answered.hpp"

#include <filesystem>
#include <limits>
#include <utility>

namespace parley::actors {

archive::archive(caf::actor_system& system, const config::settings& settings, recorder_feed& feed,
                 recording_meter& counted, const std::function<void(const std::string&)>& ended) {
  const std::filesystem::path directory = settings.record.dir;
  recording_index index(directory);
  for (const auto& each : index.list({}, std::numeric_limits<std::int32_t>::max())) feed.taken(each.id);
  const retention keep{settings.record.keep_days, static_cast<std::int64_t>(settings.record.keep_bytes)};
  archivist_ = system.spawn<archivist, caf::detached>(directory, std::move(index), keep, feed, counted);
  recorder_ = system.spawn<recorder, caf::detached>(directory, feed, counted, archivist_);
  archivist_->attach_functor([ended](const caf::error&) { ended("the archivist of recordings has ended"); });
  recorder_->attach_functor([ended](const caf::error&) { ended("the recorder has ended"); });
  feed.lead_to(recorder_);
}

void archive::stop() {
  caf::anon_send(recorder_, recorder_stops{});
}

void archive::list(principal who, std::size_t most, std::function<void(std::string json)> done) {
  caf::anon_send(archivist_,
                 recordings_asked{std::move(who), most, base::answered<std::string>(std::move(done), "[]")});
}

void archive::fetch(std::string id, std::string file, principal who,
                    std::function<void(recording_answer, std::shared_ptr<const base::open_file>)> done) {
  caf::anon_send(archivist_,
                 recording_file_asked{std::move(id), std::move(file), std::move(who),
                                      base::answered<recording_answer, std::shared_ptr<const base::open_file>>(
                                          std::move(done), recording_answer::failed, nullptr)});
}

void archive::remove(std::string id, principal who, std::function<void(recording_answer)> done) {
  caf::anon_send(archivist_,
                 recording_unwanted{std::move(id), std::move(who),
                                    base::answered<recording_answer>(std::move(done), recording_answer::failed)});
}

} // namespace parley::actors
