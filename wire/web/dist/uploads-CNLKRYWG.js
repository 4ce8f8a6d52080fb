import{a as o,b as r}from"./chunk-CHRQ4MVS.js";import"./chunk-BPTOFQP6.js";import"./chunk-YIFXMPX3.js";import"./chunk-BTJADNQE.js";export{r as Uploads,o as fileSize};
