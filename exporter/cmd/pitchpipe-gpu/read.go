package main

import (
	"errors"
	"fmt"
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// read looks at all GPUs once. One that cannot be read, such as one that fell off the bus, is
// named as missing and does not affect the others. An error is about the library as a whole,
// or all GPUs: it has to be loaded again.
func (l *library) read(now time.Time) (card.Reading, error) {
	r := card.Reading{At: now, Devices: []card.Device{}}
	if l.DriverVersion != nil {
		r.Driver, _ = text(l.DriverVersion) // a label that may be missing
	}
	var n uint32
	if err := l.Count(&n).err(); err != nil {
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

func (l *library) look(i uint32) (card.Device, error) {
	k := look{library: l, Device: card.Device{Index: int(i), Missing: map[string]string{}}}
	if err := l.Handle(i, &k.at).err(); err != nil {
		return card.Device{}, err
	}
	var err error
	if k.Device.UUID, err = k.text(k.at, l.UUID); err != nil {
		return card.Device{}, err
	}
	if l.Name != nil {
		k.Device.Name, _ = k.text(k.at, l.Name) // a label that may be missing
	}
	k.Watts, k.LimitWatts = milli(&k, "watts", l.Power), milli(&k, "limit_watts", l.Limit)
	k.Joules = milli(&k, "joules", l.Energy)
	if u := figure(&k, "busy", l.Utilization); u != nil {
		k.Busy = new(min(float64(u.gpu)/100, 1))
	}
	if m := figure(&k, "memory_used_bytes", l.memoryUsed); m != nil {
		k.MemoryUsed, k.MemoryTotal = size(m.used), size(m.total)
	}
	k.split()
	return k.Device, nil
}

type look struct {
	card.Device
	*library

	at device
}

// figure calls a function, and notes under key why there is no figure.
func figure[T any](k *look, key string, call func(device, *T) status) *T {
	if call == nil {
		k.Missing[key] = errLacking.Error() + ": the library has no such function"
		return nil
	}
	v := new(T)
	if err := call(k.at, v).err(); err != nil {
		k.Missing[key] = err.Error()
		return nil
	}
	return v
}

// milli reads a figure in thousandths.
func milli[T uint32 | uint64](k *look, key string, call func(device, *T) status) *float64 {
	v := figure(k, key, call)
	if v == nil {
		return nil
	}
	return new(float64(*v) / 1000)
}

func (k *look) text(at device, call func(device, *byte, uint32) status) (string, error) {
	return text(func(b *byte, n uint32) status { return call(at, b, n) })
}

// split reads who is on the GPU, or on which of its instances.
func (k *look) split() {
	var now, pending uint32
	if k.MIGMode == nil || k.MIGCount == nil || k.MIGHandle == nil || k.MIGMode(k.at, &now, &pending) != 0 || now == 0 {
		k.Processes = k.processes(k.at)
		return
	}
	most := figure(k, "instances", k.MIGCount)
	if most == nil {
		return
	}
	k.Instances = []card.Instance{}
	for i := range *most {
		var at device
		if k.MIGHandle(k.at, i, &at) == 0 { // else no instance has this number
			k.Instances = append(k.Instances, k.instance(at))
		}
	}
}

func (k *look) instance(at device) card.Instance {
	out := card.Instance{Processes: k.processes(at)}
	out.UUID, _ = k.text(at, k.library.UUID)
	number := func(call func(device, *uint32) status) int {
		var v uint32
		if call == nil || call(at, &v) != 0 {
			return 0
		}
		return int(v)
	}
	out.GPU, out.Compute = number(k.GPUInstance), number(k.CIInstance)
	var a attributes
	if k.Attributes != nil && k.Attributes(at, &a) == 0 {
		out.SMs, out.MemoryTotal = int(a.multiprocessors), size(a.memoryMiB<<20)
	}
	return out
}

// Bounds of the list of processes.
const (
	someProcesses = 64
	mostProcesses = 1 << 15
)

// processes are those that compute and those that draw, each once.
func (k *look) processes(at device) *[]card.Process {
	out := []card.Process{}
	seen := map[uint32]bool{}
	for _, list := range []func(device, *uint32, *processInfo) status{k.Compute, k.Graphics} {
		var call func(device, *[]processInfo) status
		if list != nil {
			call = func(_ device, found *[]processInfo) status { return listed(at, list, found) }
		}
		found := figure(k, "processes", call)
		if found == nil {
			return nil
		}
		for _, p := range *found {
			if !seen[p.pid] {
				seen[p.pid] = true
				out = append(out, card.Process{Pid: int(p.pid), Memory: size(p.used)})
			}
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

// size leaves out what the library does not know: it sets all bits then.
func size(v uint64) *int64 {
	if v > 1<<62 {
		return nil
	}
	return new(int64(v))
}
