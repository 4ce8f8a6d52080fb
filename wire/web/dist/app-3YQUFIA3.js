import{sd as r}from"./chunk-NRQBLXPL.js";r();
