// Runs each core of each block in turn. The weak functions stand for cores that a dispatch does not use.
#include <cstdint>

extern "C" {
int64_t standin_block = 0;
int64_t standin_lane = 0;
__attribute__((weak)) void replay_entry_cube(int64_t *) {}
__attribute__((weak)) void replay_entry_vec(int64_t *) {}

void standin_launch(int64_t blocks, int64_t *tables) {
    for (standin_block = 0; standin_block < blocks; ++standin_block) {
        replay_entry_cube(tables);
        for (standin_lane = 0; standin_lane < 2; ++standin_lane) {
            replay_entry_vec(tables);
        }
    }
}
}
