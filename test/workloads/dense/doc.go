// Package dense trains a dense network by mini-batch gradient descent.
//
// In come an input number, a seed and a batch size; out come, per epoch, the mean
// training loss and the accuracy on examples held out. The task is synthetic but
// has to be learned: classes are several clouds each, bent by a random map. The
// learning rate grows with the batch (Goyal et al., "Accurate, large minibatch
// SGD", 2017), so that larger batches reach the same accuracy with fewer and
// cheaper updates. The result does not depend on the number of threads: examples
// of a batch are cut into a fixed number of pieces whose gradients are added in
// order.
package dense
