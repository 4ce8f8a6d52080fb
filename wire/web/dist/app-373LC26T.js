import{tb as r}from"./chunk-DIX3QADJ.js";r();
