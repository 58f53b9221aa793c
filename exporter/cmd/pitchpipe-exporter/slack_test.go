package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAllThreadsThatWereThereMayBeWokenLater(t *testing.T) {
	t.Parallel()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	slack := func(tid string) string { return filepath.Join("/proc", tid, "timerslack_ns") }
	for _, task := range tasks {
		if err := os.WriteFile(slack(task.Name()), []byte("50000"), 0); err != nil && !os.IsNotExist(err) {
			t.Skip("needs CAP_SYS_NICE:", err)
		}
	}
	unhurried()
	checked := 0
	for _, task := range tasks {
		text, err := os.ReadFile(slack(task.Name()))
		if err != nil {
			continue // the thread has ended
		}
		checked++
		if got := strings.TrimSpace(string(text)); got != "1000000" {
			t.Errorf("thread %s may be woken %s ns late", task.Name(), got)
		}
	}
	if checked == 0 {
		t.Error("no thread was there")
	}
}
