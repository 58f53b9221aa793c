package sim_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// A job on four cores whose epochs are short enough to wait for. Inside a
// testing/synctest bubble the same would cost no time at all.
func Example() {
	const script = `#!/bin/sh
#SBATCH --job-name=train
#SBATCH --cpus-per-task=4
#SIM epochs=4 seconds=0.08 parallel=1 quality=0.9 tau=1
#SIM checkpoint=10ms memory=512MiB profile=barrier
exec ./train
`
	ctx := context.Background()
	cluster, err := sim.New(sim.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()

	job, err := cluster.Start(ctx, "request-1", driver.Spec{
		Filename: "train.sh",
		Source:   []byte(script),
		Progress: driver.Progress{Pattern: `^epoch (?P<epoch>\d+)/(?P<total>\d+)`},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for !job.State.Ended() {
		time.Sleep(10 * time.Millisecond)
		if job, err = cluster.Get(ctx, job.ID); err != nil {
			fmt.Println(err)
			return
		}
	}
	output, err := cluster.Logs(ctx, job.ID, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = output.Close() }() // nothing was opened
	text, err := io.ReadAll(output)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(text))
	fmt.Println(job.State, "in", job.Ended.Sub(job.Started))

	// Output:
	// attempt 1 on node-1 with 4 cores, 4 threads, batch 32, 0 of 4 done
	// epoch 1/4 loss 0.9093 acc 0.5689
	// epoch 2/4 loss 0.3977 acc 0.7782
	// epoch 3/4 loss 0.2095 acc 0.8552
	// epoch 4/4 loss 0.1403 acc 0.8835
	// succeeded in 80ms
}
