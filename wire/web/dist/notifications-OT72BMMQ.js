import{a as o,b as r}from"./chunk-5UTX5WQI.js";import"./chunk-SBZZJFMB.js";import"./chunk-M5DRQYNF.js";import"./chunk-6V66L52X.js";export{r as NotificationFields,o as Notifications};
