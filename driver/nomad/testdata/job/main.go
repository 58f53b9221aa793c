// Program job does what a drivertest.Behaviour says, which is its only argument as
// JSON. It keeps its epoch in the folder of its second argument, under its job's id. Once
// there is a file "finish" in it epochs take no time, and while there is a file "hold"
// saving takes longer.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

type behaviour struct {
	Epoch        time.Duration
	Epochs       int
	ExitCode     int
	UseMemory    int64
	Saves        bool
	IgnoreSignal bool
	LeavesWith   int
	SaysSaved    bool
	ShowEnv      string
	SavedExit    int
}

func main() {
	var b behaviour
	if err := json.Unmarshal([]byte(os.Args[1]), &b); err != nil {
		panic(err)
	}
	state := filepath.Join(os.Args[2], strings.ReplaceAll(os.Getenv("NOMAD_JOB_ID"), "/", "_"))
	var want atomic.Bool
	switch {
	case b.IgnoreSignal:
		signal.Ignore(syscall.SIGUSR1)
	case b.Saves:
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGUSR1)
		go func() {
			for range c {
				want.Store(true)
			}
		}()
	}
	if b.ShowEnv != "" {
		fmt.Printf("env %s=%s\n", b.ShowEnv, os.Getenv(b.ShowEnv))
	}
	if b.UseMemory > 0 {
		hog, err := syscall.Mmap(-1, 0, int(b.UseMemory), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			panic(err)
		}
		for i := 0; i < len(hog); i += 4096 {
			hog[i] = 1
		}
	}
	n := 0
	if data, err := os.ReadFile(state); err == nil {
		if n, err = strconv.Atoi(string(data)); err != nil {
			panic(err)
		}
	}
	for n < b.Epochs {
		if !there("finish") {
			time.Sleep(b.Epoch)
		}
		n++
		fmt.Printf("epoch %d/%d\n", n, b.Epochs)
		if !want.Load() {
			continue
		}
		for there("hold") {
			time.Sleep(10 * time.Millisecond)
		}
		if err := os.WriteFile(state, []byte(strconv.Itoa(n)), 0o600); err != nil {
			panic(err)
		}
		switch {
		case b.SaysSaved:
			want.Store(false)
			fmt.Println("saved")
		case b.LeavesWith != 0:
			os.Exit(b.LeavesWith)
		default:
			os.Exit(b.SavedExit)
		}
	}
	os.Exit(b.ExitCode)
}

func there(name string) bool {
	_, err := os.Stat(filepath.Join(os.Args[2], name))
	return err == nil
}
