package nvml

import (
	"errors"
	"fmt"
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// Read looks at all GPUs once. One that cannot be looked at, as one that fell off the bus,
// is named as missing and takes no other with it. An error is about the library as a whole,
// or all GPUs: it is to be loaded anew.
func (l *Library) Read(now time.Time) (card.Reading, error) {
	r := card.Reading{At: now, Devices: []card.Device{}}
	if l.driverVersion != nil {
		r.Driver, _ = words(l.driverVersion) // a label that may be missing
	}
	var n uint32
	if err := l.count(&n).err(); err != nil {
		return card.Reading{}, fmt.Errorf("count the GPUs: %w", err)
	}
	var failed []error
	for i := range n {
		d, err := l.look(i)
		if err != nil {
			err = fmt.Errorf("GPU %d: %w", i, err)
			r.Missing, failed = append(r.Missing, err.Error()), append(failed, err)
			continue
		}
		r.Devices = append(r.Devices, d)
	}
	if len(r.Devices) == 0 && len(failed) > 0 {
		return card.Reading{}, errors.Join(failed...)
	}
	return r, nil
}

func (l *Library) look(i uint32) (card.Device, error) {
	var at device
	if err := l.handle(i, &at).err(); err != nil {
		return card.Device{}, err
	}
	k := look{l: l, at: at, Device: card.Device{Index: int(i), Missing: map[string]string{}}}
	var err error
	if k.UUID, err = k.words(l.uuid); err != nil {
		return card.Device{}, err
	}
	k.figures()
	k.split()
	return k.Device, nil
}

// look is one GPU being looked at.
type look struct {
	card.Device
	l  *Library
	at device
}

// got calls a function and notes under key why there is no figure.
func (k *look) got(key string, there bool, call func() status) bool {
	err := ErrLacking
	if there {
		err = call().err()
	} else {
		err = fmt.Errorf("%w: the library has no such function", err)
	}
	if err != nil {
		k.Missing[key] = err.Error()
	}
	return err == nil
}

func (k *look) words(call func(device, *byte, uint32) status) (string, error) {
	return words(func(b *byte, n uint32) status { return call(k.at, b, n) })
}

// milli reads a figure in thousandths.
func (k *look) milli(key string, call func(device, *uint32) status) *float64 {
	var v uint32
	if !k.got(key, call != nil, func() status { return call(k.at, &v) }) {
		return nil
	}
	out := float64(v) / 1000
	return &out
}

func (k *look) figures() {
	if k.l.name != nil {
		k.Name, _ = k.words(k.l.name) // a label that may be missing
	}
	k.Watts, k.LimitWatts = k.milli("watts", k.l.power), k.milli("limit_watts", k.l.limit)
	var joules uint64
	if k.got("joules", k.l.energy != nil, func() status { return k.l.energy(k.at, &joules) }) {
		v := float64(joules) / 1000
		k.Joules = &v
	}
	var u utilization
	if k.got("busy", k.l.utilization != nil, func() status { return k.l.utilization(k.at, &u) }) {
		v := min(float64(u.gpu)/100, 1)
		k.Busy = &v
	}
	var m memory
	if k.got("memory_used_bytes", k.l.memory != nil, func() status { return k.l.memory(k.at, &m) }) {
		k.MemoryUsed, k.MemoryTotal = size(m.used), size(m.total)
	}
}

// split reads who is on the GPU, or on which of its instances.
func (k *look) split() {
	var now, pending, most uint32
	if k.l.migMode == nil || k.l.migCount == nil || k.l.migHandle == nil || k.l.migMode(k.at, &now, &pending) != 0 || now == 0 {
		k.Processes = k.processes("processes", k.at)
		return
	}
	if !k.got("instances", true, func() status { return k.l.migCount(k.at, &most) }) {
		return
	}
	k.Instances = []card.Instance{}
	for i := range most {
		var at device
		if k.l.migHandle(k.at, i, &at) != 0 {
			continue // no instance has this number
		}
		k.Instances = append(k.Instances, k.instance(at))
	}
}

func (k *look) instance(at device) card.Instance {
	var out card.Instance
	out.UUID, _ = words(func(b *byte, n uint32) status { return k.l.uuid(at, b, n) })
	var id uint32
	if k.l.gpuInstance != nil && k.l.gpuInstance(at, &id) == 0 {
		out.GPU = int(id)
	}
	if k.l.ciInstance != nil && k.l.ciInstance(at, &id) == 0 {
		out.Compute = int(id)
	}
	var a attributes
	if k.l.attributes != nil && k.l.attributes(at, &a) == 0 {
		out.SMs = int(a.multiprocessors)
		out.MemoryTotal = size(a.memoryMiB << 20)
	}
	out.Processes = k.processes("processes", at)
	return out
}

// Bounds of the list of processes.
const (
	someProcesses = 64
	mostProcesses = 1 << 15
)

// processes are those that compute and those that draw, each once.
func (k *look) processes(key string, at device) *[]card.Process {
	out := []card.Process{}
	seen := map[uint32]bool{}
	for _, list := range []func(device, *uint32, *processInfo) status{k.l.compute, k.l.graphics} {
		var found []processInfo
		if !k.got(key, list != nil, func() status { return listed(at, list, &found) }) {
			return nil
		}
		for _, p := range found {
			if seen[p.pid] {
				continue
			}
			seen[p.pid] = true
			out = append(out, card.Process{Pid: int(p.pid), Memory: size(p.used)})
		}
	}
	return &out
}

// listed asks with more room until the list fits.
func listed(at device, call func(device, *uint32, *processInfo) status, found *[]processInfo) status {
	for room := uint32(someProcesses); ; room *= 4 {
		*found = make([]processInfo, room)
		n := room
		s := call(at, &n, &(*found)[0])
		if s != tooSmall || room > mostProcesses {
			*found = (*found)[:min(n, room)]
			return s
		}
	}
}

// size leaves out what the library does not know, which it says with all bits set.
func size(v uint64) *int64 {
	if v > 1<<62 {
		return nil
	}
	n := int64(v)
	return &n
}
