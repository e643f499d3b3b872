/* A library that takes the place of libcuda.so.1 or libnvidia-ml.so.1: nothing of its own. It needs
 * libregatta_gpu.so and, after it, the real one under the name libregatta_cuda_real.so or
 * libregatta_nvml_real.so, so that a search in it finds our wrappers first and everything else in
 * the real one itself. It looks for both beside itself.
 */
extern int regatta_gpu_replacement; /* C wants a declaration in each file */
