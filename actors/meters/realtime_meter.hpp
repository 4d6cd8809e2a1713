#pragma once

#include "actors/meters/metric_makers.hpp"
#include "protocol/openai/shared/adapter.hpp"
#include "protocol/transcript.hpp"

#include <array>
#include <string>
#include <string_view>

namespace parley::actors {

/// The metrics of connections that speak a dialect of OpenAI's, and of transcripts. Lives as long as the meters.
class realtime_meter {
public:
  explicit realtime_meter(prometheus::Registry& in)
      : connections_(gauge_family(in, "parley_openai_connections",
                                  "Connections that speak a dialect of OpenAI's, by where their answers come from.")),
        happened_(counter_family(in, "parley_openai_events_total",
                                 "What happens on these connections: turns of users, answers that they interrupt, "
                                 "answers from chat, calls of functions.")),
        errors_(counter_family(in, "parley_openai_errors_total",
                               "Errors and failed responses that these connections were told, by code.")) {
    // Prometheus only sees a series' first change if the series has begun at 0.
    for (const auto* dialect : {"realtime", "realtime_beta", "live"}) {
      for (const auto* lane : {"manual", "turn", "duplex"}) connections(dialect, lane);
      for (const auto name : protocol::openai::note_words)
        if (name != "error" && name != "lane") happened_.Add({{"dialect", dialect}, {"event", std::string(name)}});
      errors_.Add({{"dialect", dialect}, {"code", "server_busy"}});
    }
    auto& transcripts =
        counter_family(in, "parley_transcripts_total", "Turns that were to be written down, by the result.");
    for (std::size_t i = 0; i < transcripts_.size(); ++i)
      transcripts_[i] = &transcripts.Add({{"result", std::string(protocol::transcript_result_words[i])}});
  }

  prometheus::Gauge& connections(std::string_view dialect, std::string_view lane) {
    return connections_.Add({{"dialect", std::string(dialect)}, {"lane", std::string(lane)}});
  }
  void happened(std::string_view dialect, protocol::openai::note::what event) {
    const auto name = protocol::openai::note_words[static_cast<std::size_t>(event)];
    happened_.Add({{"dialect", std::string(dialect)}, {"event", std::string(name)}}).Increment();
  }
  void failed(std::string_view dialect, std::string_view code) {
    errors_.Add({{"dialect", std::string(dialect)}, {"code", std::string(code)}}).Increment();
  }
  void transcribed(protocol::transcript_result how) { transcripts_[static_cast<std::size_t>(how)]->Increment(); }

private:
  prometheus::Family<prometheus::Gauge>& connections_;
  prometheus::Family<prometheus::Counter>& happened_;
  prometheus::Family<prometheus::Counter>& errors_;
  std::array<prometheus::Counter*, std::size(protocol::transcript_result_words)> transcripts_{};
};

} // namespace parley::actors
