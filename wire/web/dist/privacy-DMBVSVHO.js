import{a as o}from"./chunk-CZMIC5RO.js";import"./chunk-SBZZJFMB.js";import"./chunk-M5DRQYNF.js";import"./chunk-6V66L52X.js";export{o as Privacy};
