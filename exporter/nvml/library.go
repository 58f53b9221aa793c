package nvml

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The errors that a caller may tell apart.
var (
	ErrAbsent  = errors.New("the library cannot be loaded")
	ErrDenied  = errors.New("permission denied by the driver")
	ErrLacking = errors.New("not supported")
)

// status is what every function of the library returns.
type status int32

func (s status) err() error {
	switch s { //nolint:exhaustive // the rest is passed on as it is
	case 0:
		return nil
	case 3, 13:
		return ErrLacking
	case 4:
		return ErrDenied
	}
	return fmt.Errorf("the driver answers %s", s.text())
}

// text names the answers that are met; the numbers are the library's interface.
func (s status) text() string {
	switch s {
	case 1:
		return "1 (not initialised)"
	case 2:
		return "2 (invalid argument)"
	case 6:
		return "6 (not found)"
	case 7:
		return "7 (too small)"
	case 9:
		return "9 (the driver is not loaded)"
	case 10:
		return "10 (timeout)"
	case 12:
		return "12 (the library is not found)"
	case 15:
		return "15 (the GPU is lost)"
	case 16:
		return "16 (the GPU needs a reset)"
	case 18:
		return "18 (library and driver are of different versions)"
	}
	return fmt.Sprint(int32(s))
}

// tooSmall is the answer where a list does not fit.
const tooSmall status = 7

// device is the library's handle.
type device uintptr

// The structures of the library, as its interface has them; what is not needed here of
// them is left blank.
type (
	utilization struct{ gpu, _ uint32 }
	memory      struct{ total, _, used uint64 }
	processInfo struct {
		pid, _ uint32
		used   uint64
		_      [2]uint32 // the instances
	}
	attributes struct {
		multiprocessors uint32
		_               [7]uint32 // engines and slices
		memoryMiB       uint64
	}
)

// Library is the loaded library. A function that it lacks is nil.
type Library struct {
	initialize func() status
	shutdown   func() status

	driverVersion func(*byte, uint32) status
	count         func(*uint32) status
	handle        func(uint32, *device) status
	uuid          func(device, *byte, uint32) status
	name          func(device, *byte, uint32) status
	power         func(device, *uint32) status
	limit         func(device, *uint32) status
	energy        func(device, *uint64) status
	utilization   func(device, *utilization) status
	memory        func(device, *memory) status
	compute       func(device, *uint32, *processInfo) status
	graphics      func(device, *uint32, *processInfo) status
	migMode       func(device, *uint32, *uint32) status
	migCount      func(device, *uint32) status
	migHandle     func(device, uint32, *device) status
	gpuInstance   func(device, *uint32) status
	ciInstance    func(device, *uint32) status
	attributes    func(device, *attributes) status
}

// Load loads the library at path and initialises it. The caller calls Close.
func Load(path string) (*Library, error) {
	file, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	l := &Library{}
	for symbol, into := range map[string]any{
		"nvmlInit_v2":                              &l.initialize,
		"nvmlShutdown":                             &l.shutdown,
		"nvmlSystemGetDriverVersion":               &l.driverVersion,
		"nvmlDeviceGetCount_v2":                    &l.count,
		"nvmlDeviceGetHandleByIndex_v2":            &l.handle,
		"nvmlDeviceGetUUID":                        &l.uuid,
		"nvmlDeviceGetName":                        &l.name,
		"nvmlDeviceGetPowerUsage":                  &l.power,
		"nvmlDeviceGetEnforcedPowerLimit":          &l.limit,
		"nvmlDeviceGetTotalEnergyConsumption":      &l.energy,
		"nvmlDeviceGetUtilizationRates":            &l.utilization,
		"nvmlDeviceGetMemoryInfo":                  &l.memory,
		"nvmlDeviceGetComputeRunningProcesses_v3":  &l.compute,
		"nvmlDeviceGetGraphicsRunningProcesses_v3": &l.graphics,
		"nvmlDeviceGetMigMode":                     &l.migMode,
		"nvmlDeviceGetMaxMigDeviceCount":           &l.migCount,
		"nvmlDeviceGetMigDeviceHandleByIndex":      &l.migHandle,
		"nvmlDeviceGetGpuInstanceId":               &l.gpuInstance,
		"nvmlDeviceGetComputeInstanceId":           &l.ciInstance,
		"nvmlDeviceGetAttributes_v2":               &l.attributes,
	} {
		if at, err := purego.Dlsym(file, symbol); err == nil && at != 0 {
			purego.RegisterFunc(into, at)
		}
	}
	if l.initialize == nil || l.shutdown == nil || l.count == nil || l.handle == nil || l.uuid == nil {
		return nil, fmt.Errorf("%w: %s lacks the functions that every version has", ErrAbsent, path)
	}
	if err := l.initialize().err(); err != nil {
		return nil, fmt.Errorf("initialise %s: %w", path, err)
	}
	return l, nil
}

// Close ends the use of the driver.
func (l *Library) Close() { l.shutdown() }

// words calls a function that writes a text.
func words(call func(*byte, uint32) status) (string, error) {
	var text [96]byte
	if err := call(&text[0], uint32(len(text))).err(); err != nil {
		return "", err
	}
	return zeroTerminated(text[:]), nil
}

func zeroTerminated(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// It does not compile where a structure is not as large as the library's.
const (
	_ = uint(unsafe.Sizeof(processInfo{}) - 24)
	_ = uint(24 - unsafe.Sizeof(processInfo{}))
	_ = uint(unsafe.Sizeof(attributes{}) - 40)
	_ = uint(40 - unsafe.Sizeof(attributes{}))
)
