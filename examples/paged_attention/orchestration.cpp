// Paged attention, one request after the other: for each block of its keys and values the scores, their
// softmax, the weighted values, and the update of what the request has so far.
#include <algorithm>
#include <cstdint>

#include "pto_orchestration_api.h"

namespace {

enum Kernel : int32_t { kScores = 0, kSoftmax = 1, kValues = 2, kUpdate = 3 };

uint32_t narrow(uint64_t value) { return static_cast<uint32_t>(value); }

// Folds all dimensions but the last into rows.
ChipTensor as_rows(const ChipTensor &tensor) {
    uint32_t columns = tensor.shapes[tensor.ndims - 1];
    uint32_t shape[2] = {narrow(tensor.numel() / columns), columns};
    return make_tensor_external(tensor.data_as<void>(), shape, 2, tensor.dtype);
}

ChipTensor rows_of(const ChipTensor &tensor, uint32_t first, uint32_t count) {
    uint32_t shape[2] = {count, tensor.shapes[1]}, offset[2] = {first, 0};
    return tensor.view(shape, offset);
}

} // namespace

extern "C" __attribute__((visibility("default"))) PTO2OrchestrationConfig
aicpu_orchestration_config(const ChipTaskArgs &) {
    return PTO2OrchestrationConfig{7};
}

extern "C" __attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    const ChipTensor &query_in = args.tensor(0).ref();
    const ChipTensor &table = args.tensor(3).ref();
    const ChipTensor &lengths = args.tensor(4).ref();
    uint32_t batch = query_in.shapes[0], heads = query_in.shapes[1], dim = query_in.shapes[2];
    uint32_t block = args.tensor(1).ref().shapes[1];
    uint64_t scale = args.scalar(0);

    ChipTensor query = as_rows(query_in), out = as_rows(args.tensor(5).ref());
    ChipTensor keys = as_rows(args.tensor(1).ref()), values = as_rows(args.tensor(2).ref());

    uint32_t tile_shape[2] = {heads, dim}, score_shape[2] = {heads, block}, row_shape[1] = {heads};
    TensorCreateInfo tile(tile_shape, 2, DataType::FLOAT32), row(row_shape, 1, DataType::FLOAT32);
    TensorCreateInfo score(score_shape, 2, DataType::FLOAT32), weight(score_shape, 2, query_in.dtype);

    for (uint32_t request = 0; request < batch; ++request) {
        uint32_t at[1] = {request};
        auto length = static_cast<uint32_t>(get_tensor_data<int32_t>(lengths, 1, at));
        uint32_t blocks = (length + block - 1) / block;
        PTO2_SCOPE() {
            ChipTensor q = rows_of(query, request * heads, heads);
            ChipTensor result = rows_of(out, request * heads, heads);
            TaskOutputTensors state = alloc_tensors(tile, row, row);
            const ChipTensor &sum = state.get_ref(0);
            const ChipTensor &total = state.get_ref(1);
            const ChipTensor &largest = state.get_ref(2);

            for (uint32_t b = 0; b < blocks; ++b) {
                PTO2_SCOPE_GUARD();
                uint32_t entry[2] = {request, b};
                auto page = static_cast<uint32_t>(get_tensor_data<int32_t>(table, 2, entry));
                uint32_t valid = std::min(block, length - b * block);
                ChipTensor k = rows_of(keys, page * block, block), v = rows_of(values, page * block, block);

                CoreTaskArgs scores_args;
                scores_args.add_input(q, k);
                scores_args.add_output(score);
                TaskOutputTensors scores = rt_submit_aic_task(kScores, scores_args);

                uint32_t valid_shape[2] = {heads, valid}, origin[2] = {0, 0};
                ChipTensor valid_scores = scores.get_ref(0).view(valid_shape, origin);
                CoreTaskArgs softmax_args;
                softmax_args.add_input(valid_scores);
                softmax_args.add_output(weight, row, row);
                softmax_args.add_scalar(scale);
                TaskOutputTensors softmax = rt_submit_aiv_task(kSoftmax, softmax_args);

                CoreTaskArgs values_args;
                values_args.add_input(softmax.get_ref(0), v);
                values_args.add_output(tile);
                TaskOutputTensors weighted = rt_submit_aic_task(kValues, values_args);

                uint64_t is_first = b == 0, is_last = b + 1 == blocks;
                CoreTaskArgs update_args;
                update_args.add_input(softmax.get_ref(1), softmax.get_ref(2), weighted.get_ref(0));
                update_args.add_inout(largest, total, sum, result);
                update_args.add_scalar(is_first, is_last);
                rt_submit_aiv_task(kUpdate, update_args);
            }
        }
    }
}
