import{a as o,b as r}from"./chunk-OWJY3R2K.js";import"./chunk-N7HLEIBD.js";import"./chunk-4M4U3DWL.js";import"./chunk-65TW3HXW.js";export{r as NotificationFields,o as Notifications};
