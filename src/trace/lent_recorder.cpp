#include "trace/lent_recorder.h"

#include "trace/recorder_pool.h"

namespace ingot::trace {

void GiveBack::operator()(Recorder* recorder) const { pool->give_back(std::unique_ptr<Recorder>(recorder)); }

}  // namespace ingot::trace
