import{pd as r}from"./chunk-DYHP2VQW.js";r();
