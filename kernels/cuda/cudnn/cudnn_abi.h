// The part of cuDNN's backend API ("graph API") that gxp uses: its functions by their names without
// "cudnn" and "Backend", and its numbers, which are the same in every cuDNN 9. Nothing needs
// cuDNN's headers; if they are installed, tests/cuda/cudnn/abi_check.cc compares this with them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gxp {

struct CudnnContext;  // cuDNN's own
using CudnnStatus = int;
constexpr CudnnStatus kCudnnSuccess = 0;

enum class CudnnObject : int {
  kPointwise = 0,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kDeviceProperties = 38,
};

enum class CudnnAttribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kHeuristicsDevice = 204,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanDevice = 407,
  kPointwiseWhat = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
  kMatmulPrecision = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulWhat = 1523,
  kReductionMode = 1600,
  kReductionPrecision = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionWhat = 1612,
  kReshapeX = 2200,
  kReshapeY = 2201,
  kDeviceJson = 2702,
};

// The types of attributes' values.
enum class CudnnType : int {
  kHandle = 0,
  kData = 1,
  kBoolean = 2,
  kInt64 = 3,
  kPointer = 6,
  kHeuristics = 8,
  kNote = 11,
  kPointwise = 14,
  kObject = 15,
  kReduction = 18,
  kChar = 24,
};

enum class CudnnData : int { kF32 = 0, kF16 = 2, kI32 = 4, kBF16 = 9, kBoolean = 11 };
enum class CudnnPointwise : int {
  kAdd = 0,
  kMultiply = 1,
  kDivide = 6,
  kSubtract = 9,
  kExp = 13,
  kLog = 15,
  kIdentity = 21,
  kAtLeast = 303,
  kIndex = 501,
  kSelect = 601,
};
enum class CudnnReduction : int { kSum = 0, kMax = 3 };
enum class CudnnHeuristics : int { kModeA = 3 };
enum class CudnnNote : int { kNotDeterministic = 4 };

struct CudnnFunctions {
  size_t (*version)();
  const char* (*error_string)(CudnnStatus);
  void (*last_error_string)(char*, size_t);
  CudnnStatus (*create)(CudnnContext**);
  CudnnStatus (*destroy)(CudnnContext*);
  CudnnStatus (*set_stream)(CudnnContext*, void* stream);
  CudnnStatus (*create_object)(CudnnObject, void**);
  CudnnStatus (*destroy_object)(void*);
  CudnnStatus (*set)(void* object, CudnnAttribute, CudnnType, int64_t count, const void* values);
  CudnnStatus (*get)(void* object, CudnnAttribute, CudnnType, int64_t room, int64_t* count,
                     void* values);
  CudnnStatus (*finalize)(void* object);
  CudnnStatus (*execute)(CudnnContext*, void* plan, void* variant_pack);
};

}  // namespace gxp
