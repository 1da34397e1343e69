// An orchestration that is not in this process: its calls come as lines over a socket, one answer for each.
#pragma once

namespace insight_trace::capture {

// Serves calls until the other side is done; throws OrchestrationError where it reports a failure.
void serve_channel(int file);

} // namespace insight_trace::capture
