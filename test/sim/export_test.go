package sim

import (
	"fmt"
	"reflect"
	"strings"
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
