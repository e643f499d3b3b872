"""The stand-in driver's own tests, on a GPU of another server: the library obeys as the driver does."""
import os
import re
import unittest

from remote_case import BIN, RemoteCase

# HostProcess functions are called in the program, and managed memory is touched by it: neither is forwarded, and neither are
# arrays, copies in batches, what other processes show, taking processes off a device, all that can be said of
# pointers, and parameters that graphs say of their nodes.
NOT_FORWARDED = ["CudaStream.IsNotReadyUntilItsWorkIsDone", "CudaStream.CallsHostFunctionsInTheStreamsOrder",
                 "CudaStream.TakesTheThreadsOwnStreamAsTheDefaultInTheTwins", "CudaGraph.CapturesWithoutRunningAndReplays",
                 "CudaMemory.LetsTheHostTouchManagedAndPinnedMemory", "CudaMemory.KeepsArraysUntilTheyAreDestroyed",
                 "CudaGraph.SaysWhatItsNodesAre", "CudaIpc.*", "CudaPointer.*", "Checkpoint.*",
                 "CudaMemory.CopiesABatchInTheOrderOfItsStream",
                 "CudaArray.CopiesAPlaneOutOfAWiderOne", "CudaArray.CopiesABoxThroughAnArray", "CudaArray.CopiesABoxBetweenContexts",
                 "CudaArray.CopiesRowsOfArrays",
                 "CudaArray.TakesMemoryAndGivesItBack", "CudaArray.HalvesTheLevelsOfAMipmap", "CudaGraphUpdate.CopiesAfterItSets",
                 "CudaGraphUpdate.TellsNodesOfAnExecutableAnewAndLeavesTheGraph", "CudaGraphUpdate.TakesOverAGraphOfTheSameShapeOnly",
                 "CudaGraphUpdate.ClonesAndKnowsItsEdges", "CudaGraphUpdate.KeepsTheParametersOfLaunchesAlsoOfCapturedOnes"]
# A launch returns before the server has it: these want its error at once.
EAGER = ["CudaStream.RefusesLaunchesThatNoDeviceCanRun", "CudaGraph.CannotAllocateAgainWhatNobodyFreed",
         "CudaCapture.CannotMakeTheDefaultStreamWaitForACapture", "CudaCode.LetsAKernelHaveMoreSharedMemoryOnlyWhenItAsks",
         "CudaCode.CooperatesByAttributeOnlyWhenAllBlocksFit",
         "CudaGraphUpdate.AllocatesByCaptureAndFreesByItself"]
# Functions of another library.
OTHERS = ["Nvml.*"]


class StandinThrough(RemoteCase):
    def run_tests(self, left_out, **environment):
        test = str(BIN / "standin_cuda_test")
        done = self.pool([self.server()], "run", "--memory", "250MiB", "--compute", "100", "--", test,
                         "--gtest_filter=-" + ":".join(left_out), REGATTA_CUDA_LIBRARY=str(BIN / "libregatta_gpu_remote.so"),
                         **environment)
        failed = re.findall(r"^\[  FAILED  \] (\S+)$", done.stdout, re.MULTILINE)
        self.assertEqual((done.returncode, failed), (0, []), done.stdout[-3000:] + done.stderr[-1000:])
        return int(re.search(r"\[  PASSED  \] (\d+) test", done.stdout).group(1))

    def test_the_tests_pass(self):
        self.assertGreaterEqual(self.run_tests(NOT_FORWARDED + EAGER + OTHERS), 40)

    def test_the_tests_pass_where_launches_block(self):
        self.assertGreaterEqual(self.run_tests(NOT_FORWARDED + OTHERS, CUDA_LAUNCH_BLOCKING="1"), 41)


if __name__ == "__main__":
    unittest.main()
