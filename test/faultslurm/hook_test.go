package faultslurm_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The order that the harness leaves for a controller or a broker, and the report that
// it gets back, are files in a folder that both know.
const (
	armFile = "arm"
	hitFile = "hit"
	goFile  = "go"
)

// What is done to a process at a point.
const (
	actionKill  = "kill"
	actionPause = "pause" // until the file go is there
)

// order says at which points of its work a process is struck: at the first it reaches.
type order struct {
	Points []string `json:"points"` // steps of the driver, or before:VERB
	Action string   `json:"action"` // kill or pause
}

// hit is what the process says about itself when it is struck.
type hit struct {
	Point string `json:"point"`
	Job   string `json:"job"` // that was being worked at; empty where it is unknown
}

// hook carries out orders in a controller or a broker. Its methods may be called at
// the same time.
type hook struct {
	dir  string // of the orders
	jobs string // the driver's records, to tell which job it was

	mu   sync.Mutex
	last string // job that was acted on last
}

// acting notes the job that an effect is for.
func (h *hook) acting(job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = job
}

// reached is called at each point, and does not come back where it is to die there.
// Others go on meanwhile.
func (h *hook) reached(point string) {
	switch h.claim(point) {
	case actionKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case actionPause:
		// A harness that died must not leave a suspended controller behind.
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if os.Remove(filepath.Join(h.dir, goFile)) == nil {
				return
			}
		}
	}
}

// claim takes an order that is for the point, reports, and returns what is to be done.
func (h *hook) claim(point string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, err := os.ReadFile(filepath.Join(h.dir, armFile))
	var o order
	if err != nil || json.Unmarshal(text, &o) != nil || !slices.Contains(o.Points, point) {
		return ""
	}
	if os.Remove(filepath.Join(h.dir, armFile)) != nil {
		return "" // the order was taken back
	}
	job := h.last
	if newest := h.newest(); newest != "" && !strings.HasPrefix(point, "before:") {
		job = newest
	}
	if writeJSON(filepath.Join(h.dir, hitFile), hit{Point: point, Job: job}) != nil {
		return ""
	}
	return o.Action
}

// newest is the job whose record was written last.
func (h *hook) newest() string {
	entries, err := os.ReadDir(h.jobs)
	if err != nil {
		return ""
	}
	var name string
	var at time.Time
	for _, e := range entries {
		info, err := e.Info()
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && err == nil && info.ModTime().After(at) {
			name, at = id, info.ModTime()
		}
	}
	return name
}

// writeJSON writes the file whole or not at all.
func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o666); err != nil { //nolint:gosec // the other side is another user
		return err
	}
	return os.Rename(path+".new", path)
}

// arm leaves an order.
func arm(dir string, o order) error {
	err := disarm(dir)
	return errors.Join(err, writeJSON(filepath.Join(dir, armFile), o))
}

// goOn ends the pause of a process and waits until it knows: the next order takes back what
// is left of this one.
func (o *owner) goOn() {
	path := filepath.Join(o.orders, goFile)
	if os.WriteFile(path, nil, 0o600) != nil {
		return
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// disarm takes an order back, and what is left of the one before.
func disarm(dir string) error {
	var errs []error
	for _, name := range []string{armFile, hitFile, goFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// struck reads the report of a process that was struck.
func struck(dir string) (hit, bool) {
	text, err := os.ReadFile(filepath.Join(dir, hitFile))
	var h hit
	return h, err == nil && json.Unmarshal(text, &h) == nil
}
