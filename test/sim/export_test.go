package sim

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"pitchpipe/driver"
)

// StopTimer keeps the cluster asleep until somebody asks it something, as a
// machine under load would.
func (c *Cluster) StopTimer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
}

// String prints the behaviour as one #SIM line that is read back as the same behaviour.
func (b Behaviour) String() string {
	line := marker
	for _, f := range fields() {
		text := ""
		switch v := reflect.ValueOf(b).FieldByIndex(f.Index).Interface().(type) {
		case []Span:
			for _, s := range v {
				text += fmt.Sprintf(",%d-%d", s.First, s.Last)
			}
			text = strings.TrimPrefix(text, ",")
		default:
			text = fmt.Sprint(v)
		}
		switch key := f.Tag.Get("sim"); {
		case text == "" || key == "checkpoint" && b.Checkpoint < 0:
			continue
		case key == "checkpoint_exit" && b.CheckpointExit == 0:
			text = "none"
		}
		line += " " + f.Tag.Get("sim") + "=" + text
	}
	return line
}

// Fault is one entry of a script of faults.
type Fault struct {
	Op  string
	Job driver.JobID // empty = any
	Nth int          // which matching call fails, from 1; 0 = every one
	Err error
}

// Script makes a Config.Faults of a list: the first fault that matches a call
// strikes. It is safe for concurrent use.
func Script(faults ...Fault) func(op string, job driver.JobID) error {
	var mu sync.Mutex
	calls := make([]int, len(faults))
	return func(op string, job driver.JobID) (err error) {
		mu.Lock()
		defer mu.Unlock()
		for i, f := range faults {
			if f.Op != op || f.Job != "" && f.Job != job {
				continue
			}
			calls[i]++
			if err == nil && (f.Nth == 0 || f.Nth == calls[i]) {
				err = f.Err
			}
		}
		return err
	}
}
