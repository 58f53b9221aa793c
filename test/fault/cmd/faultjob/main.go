package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses.
const (
	saved      = 85
	terminated = 128 + int(syscall.SIGTERM)
)

type options struct {
	journal, way         string
	hurry                []string
	epochs, status       int
	term, rerun          bool
	epoch, late, patient time.Duration
}

func main() {
	var o options
	fs := flag.NewFlagSet("faultjob", flag.ExitOnError) // leaves with 2
	fs.StringVar(&o.journal, "journal", "", "`file` of what was done, which is the checkpoint too")
	fs.IntVar(&o.epochs, "epochs", 100, "epochs in all")
	fs.DurationVar(&o.epoch, "epoch", 150*time.Millisecond, "length of an epoch")
	fs.StringVar(&o.way, "way", "leave", "what SIGUSR1 does: leave, say or end")
	fs.DurationVar(&o.late, "late", 0, "with --way=end: how long after the signal the job ends")
	fs.Func("hurry", "`file`: once it is there the job comes to its end; may stand more than once", func(file string) error {
		o.hurry = append(o.hurry, file)
		return nil
	})
	fs.BoolVar(&o.term, "term", false, "leave on SIGTERM and SIGINT, and save before where it was not asked to in this attempt")
	fs.BoolVar(&o.rerun, "rerun", false, "an attempt that finds the work done goes on until it is stopped")
	fs.IntVar(&o.status, "status", 0, "exit status of a job that is done")
	_ = fs.Parse(os.Args[1:]) // does not return where there is an error
	if o.journal == "" || o.epochs < 1 || o.way != "leave" && o.way != "say" && o.way != "end" {
		fs.Usage()
		os.Exit(2)
	}
	o.patient = 30 * time.Second
	asked := make(chan os.Signal, 8)
	signal.Notify(asked, syscall.SIGUSR1)
	ended := make(chan os.Signal, 8)
	if o.term {
		signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	}
	status, err := run(o, asked, ended)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faultjob:", err)
		status = 1
	}
	os.Exit(status)
}

// attempt is one run of the job.
type attempt struct {
	o       options
	journal *os.File
	token   string // unlike that of any other attempt
	done    int    // epochs
	total   int    // epochs after which the job is done
	hurried bool   // its end was brought forward
	over    bool   // an attempt before came to the job's end
}

func run(o options, asked, ended <-chan os.Signal) (status int, err error) {
	f, err := os.OpenFile(o.journal, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	a := attempt{o: o, journal: f, total: o.epochs, token: strconv.Itoa(os.Getpid()) + "." + strconv.FormatInt(time.Now().UnixMilli(), 10)}
	alone, err := a.lock()
	if err != nil {
		return 0, err
	}
	if err := a.recall(); err != nil {
		return 0, err
	}
	if !alone {
		if err := a.note("beside"); err != nil {
			return 0, err
		}
	}
	if a.over && o.rerun {
		return again(&a, ended)
	}
	if err := a.note("begin %d restart=%s cpus=%s batch=%s intent=%s", a.done, env("SLURM_RESTART_COUNT"), env("SLURM_CPUS_ON_NODE"), env("BATCH_SIZE"), env("PITCHPIPE_INTENT")); err != nil {
		return 0, err
	}
	return a.work(asked, ended)
}

// again does finished work again, until it is stopped.
func again(a *attempt, ended <-chan os.Signal) (int, error) {
	if err := a.note("rerun %d", time.Now().UnixMilli()); err != nil {
		return 0, err
	}
	for {
		select {
		case <-ended:
			return terminated, a.note("stopped %d", time.Now().UnixMilli())
		case <-time.After(50 * time.Millisecond):
			if err := a.note("again %d", time.Now().UnixMilli()); err != nil {
				return 0, err
			}
		}
	}
}

// hurries reports whether the job is to come to its end.
func (o options) hurries() bool {
	return slices.ContainsFunc(o.hurry, func(file string) bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// env is a variable, "-" where it is not set.
func env(name string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return "-"
}

// lock makes the journal this attempt's, and reports whether it was free.
func (a *attempt) lock() (alone bool, err error) {
	alone = true
	for end := time.Now().Add(a.o.patient); ; time.Sleep(50 * time.Millisecond) {
		err := unix.Flock(int(a.journal.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return alone, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return false, errors.Join(fmt.Errorf("lock %s: %w", a.o.journal, err), a.note("beside"))
		}
		alone = false
	}
}

// recall reads the last epoch that was saved, and the job's last where one was noted.
func (a *attempt) recall() error {
	if _, err := a.journal.Seek(0, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewScanner(a.journal)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		a.over = a.over || len(words) > 1 && words[1] == "end"
		if len(words) != 3 || words[1] != "saved" && words[1] != "last" {
			continue
		}
		v, err := strconv.Atoi(words[2])
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if words[1] == "saved" {
			a.done = v
		} else {
			a.total, a.hurried = v, true
		}
	}
	return lines.Err()
}

// hasten makes the job end after a few more epochs, which is noted once: later attempts
// do as many.
func (a *attempt) hasten(more int) error {
	if a.hurried {
		return nil
	}
	a.hurried, a.total = true, min(a.total, a.done+more)
	return a.note("last %d", a.total)
}

// note appends a line with one write.
func (a *attempt) note(format string, args ...any) error {
	_, err := fmt.Fprintf(a.journal, "%s %s\n", a.token, fmt.Sprintf(format, args...))
	return err
}

func (a *attempt) work(asked, ended <-chan os.Signal) (int, error) {
	var end time.Time // when the job comes to its own end, once it was asked
	kept := false     // it was asked to save, and did
	for a.done < a.total {
		// Epochs vary in length, so that no setting is certain to be better.
		length := a.o.epoch/2 + rand.N(a.o.epoch)
		if a.o.hurries() {
			length = time.Millisecond
			if err := a.hasten(2); err != nil {
				return 0, err
			}
		}
		if !end.IsZero() {
			length = max(time.Until(end)/time.Duration(a.total-a.done), time.Millisecond)
		}
		wanted, left := pause(length, asked, ended)
		if left {
			return terminated, a.leave(kept)
		}
		a.done++
		if err := a.note("epoch %d", a.done); err != nil {
			return 0, err
		}
		acc := a.learned()
		fmt.Printf("epoch %d/%d loss %.4f acc %.4f\n", a.done, a.o.epochs, 1-acc, acc)
		if !wanted || a.done == a.total {
			continue
		}
		if err := a.note("saved %d", a.done); err != nil {
			return 0, err
		}
		kept = true
		if a.o.way == "leave" {
			return saved, a.note("leave %d", time.Now().UnixMilli())
		}
		if a.o.way == "end" && end.IsZero() {
			end = time.Now().Add(a.o.late)
			if err := a.hasten(5); err != nil {
				return 0, err
			}
		}
		fmt.Println("saved")
	}
	fmt.Printf("done after %d epochs\n", a.done)
	return a.o.status, a.note("end %d", time.Now().UnixMilli())
}

// learned is the share of the work that is done, or with a learning rate what a trial of a search learned of it: the
// same for the same rate and epoch.
func (a *attempt) learned() float64 {
	rate, err := strconv.ParseFloat(os.Getenv("LEARNING_RATE"), 64)
	if err != nil {
		return float64(a.done) / float64(a.o.epochs)
	}
	return (1 - math.Abs(rate-0.6)) * (1 - math.Exp(-rate*float64(a.done)))
}

// leave is the end of an attempt that SIGTERM ended.
func (a *attempt) leave(kept bool) error {
	if kept {
		return a.note("term %d", time.Now().UnixMilli())
	}
	if err := a.note("saved %d", a.done); err != nil {
		return err
	}
	return a.note("leave %d", time.Now().UnixMilli())
}

// pause lets an epoch pass and reports whether the job was asked to save meanwhile, or was
// told to end.
func pause(length time.Duration, asked, ended <-chan os.Signal) (wanted, left bool) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		select {
		case <-asked:
			wanted = true
		case <-ended:
			return wanted, true
		case <-timer.C:
			return wanted, false
		}
	}
}
