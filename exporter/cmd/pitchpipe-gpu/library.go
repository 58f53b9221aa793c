package main

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The errors that a caller may distinguish.
var (
	errAbsent  = errors.New("the library cannot be loaded")
	errDenied  = errors.New("permission denied by the driver")
	errLacking = errors.New("not supported")
)

// status is what every function of the library returns.
type status int32

// tooSmall means that a list does not fit.
const tooSmall status = 7

func (s status) err() error {
	switch s { //nolint:exhaustive // the rest is passed on as it is
	case 0:
		return nil
	case 3, 13:
		return errLacking
	case 4:
		return errDenied
	}
	text := map[status]string{
		1: "not initialised", 2: "invalid argument", 6: "not found", tooSmall: "too small", 9: "the driver is not loaded", 10: "timeout",
		12: "the library is not found", 15: "the GPU is lost", 16: "the GPU needs a reset", 18: "library and driver are of different versions",
	}[s]
	if text == "" {
		return fmt.Errorf("the driver answers %d", int32(s))
	}
	return fmt.Errorf("the driver answers %d (%s)", int32(s), text)
}

// device is the library's handle.
type device uintptr

// The structures of the library, as its interface has them; unused parts are blank.
type (
	utilization struct{ gpu, _ uint32 }
	memory      struct{ total, _, used uint64 }
	memory2     struct {
		version, _        uint32
		total, _, _, used uint64 // the blanks are reserved and free
	}
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

// library is the loaded library. A function that it lacks is nil.
type library struct {
	Initialize    func() status                              `nvml:"nvmlInit_v2"`
	Shutdown      func() status                              `nvml:"nvmlShutdown"`
	DriverVersion func(*byte, uint32) status                 `nvml:"nvmlSystemGetDriverVersion"`
	Count         func(*uint32) status                       `nvml:"nvmlDeviceGetCount_v2"`
	Handle        func(uint32, *device) status               `nvml:"nvmlDeviceGetHandleByIndex_v2"`
	UUID          func(device, *byte, uint32) status         `nvml:"nvmlDeviceGetUUID"`
	Name          func(device, *byte, uint32) status         `nvml:"nvmlDeviceGetName"`
	Power         func(device, *uint32) status               `nvml:"nvmlDeviceGetPowerUsage"`
	Limit         func(device, *uint32) status               `nvml:"nvmlDeviceGetEnforcedPowerLimit"`
	Energy        func(device, *uint64) status               `nvml:"nvmlDeviceGetTotalEnergyConsumption"`
	Utilization   func(device, *utilization) status          `nvml:"nvmlDeviceGetUtilizationRates"`
	Memory        func(device, *memory) status               `nvml:"nvmlDeviceGetMemoryInfo"`
	Memory2       func(device, *memory2) status              `nvml:"nvmlDeviceGetMemoryInfo_v2"`
	Compute       func(device, *uint32, *processInfo) status `nvml:"nvmlDeviceGetComputeRunningProcesses_v3"`
	Graphics      func(device, *uint32, *processInfo) status `nvml:"nvmlDeviceGetGraphicsRunningProcesses_v3"`
	MIGMode       func(device, *uint32, *uint32) status      `nvml:"nvmlDeviceGetMigMode"`
	MIGCount      func(device, *uint32) status               `nvml:"nvmlDeviceGetMaxMigDeviceCount"`
	MIGHandle     func(device, uint32, *device) status       `nvml:"nvmlDeviceGetMigDeviceHandleByIndex"`
	GPUInstance   func(device, *uint32) status               `nvml:"nvmlDeviceGetGpuInstanceId"`
	CIInstance    func(device, *uint32) status               `nvml:"nvmlDeviceGetComputeInstanceId"`
	Attributes    func(device, *attributes) status           `nvml:"nvmlDeviceGetAttributes_v2"`
}

// load loads the library at path and initialises it. The caller calls Shutdown.
func load(path string) (*library, error) {
	file, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAbsent, err)
	}
	l := &library{}
	functions := reflect.ValueOf(l).Elem()
	for i := range functions.NumField() {
		if at, err := purego.Dlsym(file, functions.Type().Field(i).Tag.Get("nvml")); err == nil && at != 0 {
			purego.RegisterFunc(functions.Field(i).Addr().Interface(), at)
		}
	}
	if l.Initialize == nil || l.Shutdown == nil || l.Count == nil || l.Handle == nil || l.UUID == nil || l.Memory == nil {
		return nil, fmt.Errorf("%w: %s lacks the functions that every version has", errAbsent, path)
	}
	if err := l.Initialize().err(); err != nil {
		return nil, fmt.Errorf("initialise %s: %w", path, err)
	}
	return l, nil
}

// memoryUsed reads the memory that programs use. The library's first version of this counts what
// the driver reserves as used too, about half a gibibyte of a large card.
func (l *library) memoryUsed(d device, m *memory) status {
	v := memory2{version: uint32(unsafe.Sizeof(memory2{})) | 2<<24}
	if l.Memory2 == nil || l.Memory2(d, &v) != 0 {
		return l.Memory(d, m)
	}
	m.total, m.used = v.total, v.used
	return 0
}

func text(call func(*byte, uint32) status) (string, error) {
	room := make([]byte, 96)
	if err := call(&room[0], uint32(len(room))).err(); err != nil {
		return "", err
	}
	room, _, _ = bytes.Cut(room, []byte{0})
	return string(room), nil
}

// It does not compile unless the structures are as large as the library's.
var (
	_ [24]byte = [unsafe.Sizeof(processInfo{})]byte{}
	_ [40]byte = [unsafe.Sizeof(memory2{})]byte{}
	_ [40]byte = [unsafe.Sizeof(attributes{})]byte{}
)
