// A stand-in for NVIDIA's management library: three GPUs, of which the third is lost.
//   GPU 0 at 0000:3d:00.0: two NVLinks to GPU 1, three to a switch at 0000:c1:00.0, one that is
//   down; two chip-to-chip links of 200 GB/s, one of which is down. It may not write GPU 1.
//   GPU 1 at 10000:01:00.0: two NVLinks to GPU 0; MIG devices 0 and 2.
#include <cstdio>
#include <cstring>

namespace {

struct Device {
  int number;
  const char* bus_id;
};
Device devices[] = {{0, "00000000:3D:00.0"}, {1, "00010000:01:00.0"}};
Device slices[] = {{10, ""}, {11, ""}, {12, ""}};

struct PciInfo {
  char old_bus_id[16];
  unsigned numbers[5];
  char bus_id[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct FieldValue {
  unsigned field, scope;
  long long times[2];
  int type, result;
  unsigned long long value;
};
constexpr int kInvalid = 2, kNotSupported = 3, kGpuLost = 15;

const char* remote_of(const Device* device, unsigned link) {
  if (device->number == 1) return link < 2 ? devices[0].bus_id : nullptr;
  if (link < 2) return devices[1].bus_id;
  return link < 5 ? "00000000:C1:00.0" : nullptr;
}

}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int result) { return result == kGpuLost ? "GPU is lost" : "wrong"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "550.54.15");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned number, Device** device) {
  if (number >= 2) return kGpuLost;
  *device = &devices[number];
  return 0;
}
int nvmlDeviceGetName(Device*, char* text, unsigned size) {
  std::snprintf(text, size, "NVIDIA H100 80GB HBM3");
  return 0;
}
int nvmlDeviceGetPciInfo_v3(Device* device, PciInfo* info) {
  std::snprintf(info->bus_id, sizeof info->bus_id, "%s", device->bus_id);
  return 0;
}
int nvmlDeviceGetUUID(Device* device, char* text, unsigned size) {
  std::snprintf(text, size, "%s-%02d", device->number < 10 ? "GPU" : "MIG", device->number);
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(Device* device, unsigned* count) {
  if (device->number == 0) return kNotSupported;
  *count = 3;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(Device*, unsigned index, Device** slice) {
  if (index == 1) return 6;  // not found
  *slice = &slices[index];
  return 0;
}
int nvmlDeviceGetMemoryInfo(Device*, MemoryInfo* info) {
  *info = {80ull << 30, 80ull << 30, 0};
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(Device*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetNvLinkState(Device* device, unsigned link, int* active) {
  if (link >= 6) return kInvalid;
  *active = remote_of(device, link) != nullptr;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device* device, unsigned link, PciInfo* info) {
  std::snprintf(info->bus_id, sizeof info->bus_id, "%s", remote_of(device, link));
  return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device* device, unsigned link, int* type) {
  *type = device->number == 0 && link >= 2 ? 2 : 0;
  return 0;
}
int nvmlDeviceGetP2PStatus(Device* a, Device*, int index, int* status) {
  *status = a->number == 0 && index == 1 ? 4 : 0;
  return 0;
}
int nvmlDeviceGetFieldValues(Device* device, int, FieldValue* value) {
  value->result = device->number == 0 ? 0 : kNotSupported;
  const bool first = value->scope == 0;
  value->value = value->field == 170 ? 2 : value->field == 171 ? unsigned(first) : 200000;
  return 0;
}
}
