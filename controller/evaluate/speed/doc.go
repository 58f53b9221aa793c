// Package speed measures forecasts of a job's speed on recorded trials: of each workload
// a few settings are measured, one after the other as the model asks for them, and the
// rest is forecast and compared.
//
// In come tables of trials, the column that holds the outcome and the number of settings
// to measure; out comes a Report with a row for each workload and machine. There is no
// chance in it. The outcome of a setting is the mean over the runs that ran, a rate of 0 is
// a run that failed, and rows that tell neither are counted and told. A setting under which
// all runs failed is no part of the errors, and measuring
// one is paid for; in tables with a relative_speed, 0.1 at the least memory stands for
// such a run. The package never shows the model a setting that it did not ask for.
package speed
