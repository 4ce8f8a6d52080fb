import{pd as r}from"./chunk-YGMU7ZFH.js";r();
