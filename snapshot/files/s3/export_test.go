package s3

// OpenWithStall is Open with another limit for a read or write on the network.
var OpenWithStall = open
