import{sd as r}from"./chunk-7LCL5MDI.js";r();
