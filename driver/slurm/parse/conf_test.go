package parse_test

import (
	"errors"
	"testing"

	"pitchpipe/driver/slurm/parse"
)

func TestTheNumberOfTheNextJob(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"Configuration data as of 2026-11-21T08:30:51\nMinJobAge               = 300 sec\nNEXT_JOB_ID             = 10001\n": 10001,
		"NEXT_JOB_ID             = soon\n":  0,
		"MinJobAge               = 300 sec": 0,
	} {
		got, err := parse.Config([]byte(text)).NextJob()
		if got != want || (want == 0) != errors.Is(err, parse.ErrFormat) {
			t.Errorf("%q: %d (%v), want %d", text, got, err, want)
		}
	}
}

func TestWhatAClusterIsSetTo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][3]bool{ // it puts 85 back, it hides jobs, it has accounting
		"RequeueExit = (null)\nRequeueExitHold = 85\n":                    {true, false, false},
		"RequeueExit = 1,80-90\nPrivateData = accounts, jobs\n":           {true, true, false},
		"RequeueExitHold = 8,850\nPrivateData = all\n":                    {false, true, false},
		"RequeueExit = x-90,-\nPrivateData = usage\n":                     {false, false, false},
		"AccountingStorageType   = accounting_storage/slurmdbd\nEmpty = ": {false, false, true},
	} {
		c := parse.Config([]byte(text))
		if got := [3]bool{c.Requeues(85), c.HidesJobs(), c.Accounts()}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
