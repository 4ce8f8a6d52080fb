import{a as o,b as r}from"./chunk-PNJ3I74X.js";import"./chunk-CXF7STKK.js";import"./chunk-YU2QCQVI.js";import"./chunk-244JP7VZ.js";export{r as NotificationFields,o as Notifications};
